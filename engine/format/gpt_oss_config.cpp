#include "engine/format/gpt_oss_config.h"

#include <algorithm>

namespace canopy {
namespace {

constexpr float kUsualLimit = 7;

void set_common(ModelConfig& config) {
  config.has_sinks = true;
  config.has_expert_bias = true;
  config.swiglu_limit = kUsualLimit;
}

}  // namespace

void read_hf_gpt_oss(const JsonFields& fields, ModelConfig& config) {
  set_common(config);
  config.experts = fields.u32(fields.has("num_local_experts") ? "num_local_experts" : "num_experts");
  config.experts_used = fields.u32("num_experts_per_tok");
  config.expert_ffn = config.ffn;
  config.has_experts.assign(std::min(config.layers, 1u << 16), true);  // validate_config bounds the layers
  config.has_qkv_bias = config.has_output_bias = fields.boolean_or("attention_bias", true);
  config.swiglu_limit = static_cast<float>(fields.number_or("swiglu_limit", kUsualLimit));
}

void set_gguf_gpt_oss(ModelConfig& config) {
  set_common(config);
  config.rope_scaling.truncate = false;  // as the models were trained
}

}  // namespace canopy
