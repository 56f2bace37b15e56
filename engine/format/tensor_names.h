#pragma once
// The names of tensors in files, and the one name that each has here: that of GGUF without ".weight", with the number
// of an expert behind it.

#include <string>
#include <string_view>
#include <vector>

namespace canopy {

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

}  // namespace canopy
