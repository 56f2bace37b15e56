#pragma once
// Multi-head latent attention in the files of DeepSeek 2 and its like (DeepSeek-AI, "DeepSeek-V2", 2024;
// GLM-4.7-Flash).

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

/// config.json with the one key of latents in the place of the heads that it states. Throws bad_input, naming the
/// field, where a size is missing.
nlohmann::json complete_latent(const nlohmann::json& object);

/// Attention of an object completed so, whose layer count and sizes are read already. Throws bad_input, naming the
/// field; not validated otherwise.
void read_hf_latent(const JsonFields& config_json, ModelConfig& config);

/// The same of GGUF's keys "<prefix>....".
void read_gguf_latent(const GgufFile& file, std::string_view prefix, ModelConfig& config);

/// The tensors, under canonical names, with "blk.N.attn_k_b" [heads * head_dim, key_dim], which makes a query of all of
/// a latent's elements (0 of those that are turned), and "blk.N.attn_v_b" [heads * value_dim, rank] in the place of a
/// folder's "blk.N.attn_kv_b" or of GGUF's two tensors of three dimensions. No value is rounded. Throws bad_input,
/// naming the tensor, where one is missing or has another shape or type than the configuration says; `shown` gives its
/// name for messages.
std::vector<TensorView> separate_latent_heads(std::span<const TensorView> tensors, const ModelConfig& config,
                                              const std::function<std::string(const std::string& name)>& shown);

}  // namespace canopy
