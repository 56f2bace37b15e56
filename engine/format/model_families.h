#pragma once
// What the files of some families have that others do not: Gemma and gpt-oss.

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/format/gguf.h"
#include "engine/format/json_text.h"
#include "engine/format/model_config.h"
#include "engine/format/tensor.h"

namespace canopy {

// What files of Gemma 2 and 3 have that others do not ("Gemma 2: Improving Open Language Models at a Practical Size",
// 2024; "Gemma 3 Technical Report", 2025): embeddings that are scaled, norms of what is added to the residual stream,
// caps of scores and logits, and a rotation of its own in the layers with a window. Configurations of the models that
// see pictures leave out most fields.

/// The object of config.json that describes the text part, with what it leaves out as transformers fills it in, and
/// the rotation as older files have it ('rope_theta', 'rope_scaling', 'rope_local_base_freq'). Throws bad_input where
/// it is no object, or its rotation is of a kind that no Gemma has.
nlohmann::json complete_gemma(const nlohmann::json& text_part, std::string_view architecture);

/// What all Gemmas have: a scaled embedding, post norms, and a residual stream that is kept smaller than it is. The
/// width of the residual stream is set.
void set_gemma(ModelConfig& config);

/// The rest of an object completed so, whose sizes are read already, but for what depends on the kind of layer. Throws
/// bad_input, naming the field; not validated otherwise.
void read_hf_gemma(const JsonFields& fields, ModelConfig& config);

/// Makes a configuration, whose sizes are set, one of Gemma 3 that sees `window` positions (0: all) in all layers but
/// each sixth.
void set_gemma3(uint32_t window, ModelConfig& config);

/// As read_hf_gemma(), of a GGUF file.
void read_gguf_gemma(const GgufFile& file, std::string_view architecture, ModelConfig& config);

// What files of gpt-oss have that others do not: attention with sinks, biases of all products and experts with clamped
// gates; in folders the experts of a layer in one tensor, gate and up in turn. Floats lie transposed there, [E,
// columns, rows]; as published they are blocks of 32 columns in MXFP4 (OCP Microscaling Formats, 2023), codes and
// scales in two tensors.

/// Experts and biases of config.json, whose layer count and sizes are read already. Throws bad_input, naming the field;
/// not validated otherwise.
void read_hf_gpt_oss(const JsonFields& config_json, ModelConfig& config);

/// What GGUF files do not say, as all models of this architecture have it; the experts are read already.
void set_gguf_gpt_oss(ModelConfig& config);

/// The tensors, under canonical names, with matrices "blk.N.ffn_gate.E", "blk.N.ffn_up.E" and "blk.N.ffn_down.E" and
/// biases "blk.N.ffn_gate_exps.bias", ... in the place of each layer's "blk.N.ffn_gate_up_exps", "blk.N.ffn_down_exps"
/// (or their ".blocks" and ".scales") and ".bias". No value is rounded: codes and scales of MXFP4 become blocks of the
/// type of that name. Of Qwen3-VL, which has neither biases nor such codes, all gates stand in front of the other
/// halves, and layers without experts stay as they are. Throws bad_input, naming the tensor, where one is missing or
/// has another shape or type than the configuration says; `shown` gives its name for messages.
std::vector<TensorView> separate_experts_of_folder(std::span<const TensorView> tensors, const ModelConfig& config,
                                                   const std::function<std::string(const std::string& name)>& shown);

}  // namespace canopy
