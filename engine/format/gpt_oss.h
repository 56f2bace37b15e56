#pragma once
// What files of gpt-oss have that others do not: attention with sinks, biases of all products and experts with clamped
// gates; in folders the experts of a layer in one tensor, gate and up in turn. Floats lie transposed there, [E,
// columns, rows]; as published they are blocks of 32 columns in MXFP4 (OCP Microscaling Formats, 2023), codes and
// scales in two tensors.

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "engine/format/json_text.h"
#include "engine/format/model_config.h"
#include "engine/format/tensor_view.h"

namespace canopy {

/// Experts and biases of config.json, whose layer count and sizes are read already. Throws bad_input, naming the field;
/// not validated otherwise.
void read_hf_gpt_oss(const JsonFields& config_json, ModelConfig& config);

/// What GGUF files do not say, as all models of this architecture have it; the experts are read already.
void set_gguf_gpt_oss(ModelConfig& config);

/// The tensors, under canonical names, with matrices "blk.N.ffn_gate.E", "blk.N.ffn_up.E" and "blk.N.ffn_down.E" and
/// biases "blk.N.ffn_gate_exps.bias", ... in the place of each layer's "blk.N.ffn_gate_up_exps", "blk.N.ffn_down_exps"
/// (or their ".blocks" and ".scales") and ".bias". No value is rounded: codes and scales of MXFP4 become blocks of the
/// type of that name. Throws bad_input, naming the tensor, where one is missing or has another shape or type than the
/// configuration says; `shown` gives its name for messages.
std::vector<TensorView> separate_gpt_oss_experts(std::span<const TensorView> tensors, const ModelConfig& config,
                                                 const std::function<std::string(const std::string& name)>& shown);

}  // namespace canopy
