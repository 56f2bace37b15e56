#include "engine/format/hybrid_config.h"

#include <string>

#include "engine/base/error.h"
#include "engine/base/printable.h"
#include "engine/format/architecture.h"

namespace canopy {
namespace {

std::vector<bool> read_kinds(const JsonFields& fields, uint32_t layers) {
  if (!fields.has("layer_types")) {
    const uint32_t step = fields.u32_or("full_attention_interval", kUsualAttentionStep);
    return recurrent_layers(layers, checked_layer_step(step, "field 'full_attention_interval' of " + fields.what()));
  }
  std::vector<bool> recurrent;
  for (const nlohmann::json& kind : fields.list("layer_types")) {
    if (kind != "linear_attention" && kind != "full_attention") {
      throw bad_input("The field 'layer_types' of " + fields.what() + " holds " + printable(kind.dump(), 40) +
                      "; linear_attention and full_attention are allowed.");
    }
    recurrent.push_back(kind == "linear_attention");
  }
  if (recurrent.size() == layers) return recurrent;
  throw bad_input("The field 'layer_types' of " + fields.what() + " has " + std::to_string(recurrent.size()) +
                  " entries; the model has " + std::to_string(layers) + " layers.");
}

}  // namespace

void read_hf_hybrid(const JsonFields& fields, ModelConfig& config) {
  config.recurrent = read_kinds(fields, config.layers);
  config.delta_net = {.key_heads = fields.u32("linear_num_key_heads"),
                      .value_heads = fields.u32("linear_num_value_heads"),
                      .key_dim = fields.u32("linear_key_head_dim"),
                      .value_dim = fields.u32("linear_value_head_dim"),
                      .taps = fields.u32("linear_conv_kernel_dim")};
  config.has_output_gate = fields.boolean_or("attn_output_gate", true);
  config.has_trained_form = true;
}

void read_gguf_hybrid(const GgufFile& file, std::string_view prefix, ModelConfig& config) {
  const auto key = [&](const char* name) { return std::string(prefix) + "." + name; };
  const uint32_t further = file.u32_if(key("nextn_predict_layers")).value_or(0);
  if (further >= config.layers) {
    throw bad_input("The metadata '" + key("nextn_predict_layers") + "' is " + std::to_string(further) +
                    "; less than '" + key("block_count") + "', " + std::to_string(config.layers) + ", is allowed.");
  }
  config.layers -= further;
  if (!config.layer_ffn.empty()) config.layer_ffn.resize(config.layers);
  config.unread_layers = further;
  const uint32_t step = file.u32_if(key("full_attention_interval")).value_or(kUsualAttentionStep);
  config.recurrent =
      recurrent_layers(config.layers, checked_layer_step(step, "metadata '" + key("full_attention_interval") + "'"));
  DeltaNetConfig& net = config.delta_net;
  net.key_heads = file.u32(key("ssm.group_count"));
  net.value_heads = file.u32(key("ssm.time_step_rank"));
  net.key_dim = file.u32(key("ssm.state_size"));
  net.taps = file.u32(key("ssm.conv_kernel"));
  net.tiled = prefix != "qwen3next";  // of others the converter puts the value heads in another order
  const uint32_t inner = file.u32(key("ssm.inner_size"));
  if (net.value_heads == 0 || inner % net.value_heads != 0) {
    throw bad_input("The metadata '" + key("ssm.inner_size") + "' is " + std::to_string(inner) + ", no multiple of '" +
                    key("ssm.time_step_rank") + "', " + std::to_string(net.value_heads) + ".");
  }
  net.value_dim = inner / net.value_heads;
  config.has_output_gate = true;
}

}  // namespace canopy
