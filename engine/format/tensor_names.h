#pragma once
// The names of tensors in files and the canonical one of each; matrices that a file holds as one tensor and the engine
// knows as several.

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/format/architecture.h"
#include "engine/format/tensor.h"

namespace canopy {

// The one name that each tensor has here is that of GGUF without ".weight", with the number of an expert behind it.

/// "blk.3.attn_q.weight" -> "blk.3.attn_q"; other names, such as "blk.3.attn_q.bias", stay as they are. "post
/// attention" names the norm before the feed-forward, but in layers with post norms.
std::string canonical_name_from_gguf(std::string_view name, bool has_post_norms = false);

/// "model.layers.3.self_attn.q_proj.weight" -> "blk.3.attn_q", ".bias" likewise -> "blk.3.attn_q.bias"; names we do not
/// know stay as they are.
std::string canonical_name_from_hugging_face(std::string_view name, bool has_post_norms = false);

/// What a name of Hugging Face depends on besides.
struct FolderNames {
  bool has_post_norms = false;
  bool has_fused_tensors = false;  // as Phi-3
  bool is_gpt_oss = false;
  bool is_granite = false;
  bool is_nemotron = false;
  bool is_lfm2 = false;
  std::vector<bool> recurrent;  // by layer; empty: none
};

/// The way back, for messages: "blk.3.attn_q" -> "model.layers.3.self_attn.q_proj.weight"; names we do not know stay as
/// they are.
std::string hugging_face_name(std::string_view canonical, const FolderNames& names);

/// Without what training tools wrap modules in, anywhere in the name: torch.compile's "_orig_mod", DDP's "module",
/// FSDP's and checkpointing's wrappers, PEFT's "base_model.model" and "base_layer", and a "model" around the model:
/// "base_model.model.model.norm.weight" -> "model.norm.weight".
std::string without_wrappers(std::string_view name);

/// "blk.3.ffn_down.17", of an expert, -> "blk.3.ffn_down"; other canonical names stay as they are.
std::string_view without_expert(std::string_view canonical);

/// Whether a tensor, by its name in the file, belongs to a part that sees pictures or hears sounds, as folders and as
/// GGUF files that hold it beside the text call it: nothing reads it.
bool is_of_pictures_or_sounds(std::string_view name);

// Matrices that a file holds as one, below each other, and the engine knows as several: q, k and v of Phi-3, and of
// other models where a converter was told to join them; Phi-3's gate and up; a layer's experts.

struct FusedTensor {
  std::string name;                   // canonical; it may be that of a part
  std::vector<RequiredTensor> parts;  // from the first row on
  bool is_vector = false;             // a bias, whose elements are the rows
  uint64_t stacked = 0;               // the tensor's first dimension of three, of which each has as many parts; 0: two
};

/// Those of a model of this configuration, whose file `has` such tensors: what its architecture always has so, and
/// queries, keys and values where they are joined.
std::vector<FusedTensor> fused_tensors(const ModelConfig& config,
                                       const std::function<bool(const std::string& name)>& has);

/// What a file that `has` such tensors has of the experts, one tensor for those of a layer: "blk.3.ffn_up_exps" of
/// "blk.3.ffn_up.0", ..., or "blk.3.ffn_gate_up_exps" of "blk.3.ffn_gate.0", "blk.3.ffn_up.0", .... GGUF files must
/// have either; folders may have each expert by itself.
std::vector<FusedTensor> stacked_experts(const ModelConfig& config, bool must_have,
                                         const std::function<bool(const std::string& name)>& has);

/// The tensors with views of the rows of each part in the place of what is fused. Throws bad_input, naming the tensor,
/// where one is missing or has another shape than its parts together; `shown` gives the name for messages.
std::vector<TensorView> with_parts(std::span<const TensorView> tensors, std::span<const FusedTensor> fused,
                                   const std::function<std::string(const std::string& name)>& shown = {});

}  // namespace canopy
