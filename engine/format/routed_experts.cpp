#include "engine/format/routed_experts.h"

#include <algorithm>
#include <string>
#include <vector>

#include "engine/base/error.h"
#include "engine/base/text.h"

namespace canopy {
namespace {

using nlohmann::json;

/// The layers behind the first ones have experts.
void set_layers_with_experts(uint32_t dense_layers, ModelConfig& config) {
  for (uint32_t n = 0; n < config.layers; ++n) config.has_experts.push_back(n >= dense_layers);
  config.gates_shared_expert = false;
}

void set_shared_width(uint64_t experts, ModelConfig& config) {
  const uint64_t width = experts * config.expert_ffn;
  if (width > UINT32_MAX) {
    throw bad_input("The model has " + std::to_string(experts) + " shared experts of " +
                    std::to_string(config.expert_ffn) + " elements, more than any model has.");
  }
  config.shared_ffn = static_cast<uint32_t>(width);
}

void read_hf_router(const JsonFields& fields, bool router_has_sigmoid, ModelConfig& config) {
  const std::string scores = fields.text_or("scoring_func", router_has_sigmoid ? "sigmoid" : "softmax");
  if (scores != "sigmoid" && scores != "softmax") {
    throw bad_input("The field 'scoring_func' of config.json is '" + printable(scores) +
                    "'; sigmoid and softmax are supported.");
  }
  config.router_has_sigmoid = scores == "sigmoid";
  const char* usual = config.router_has_sigmoid ? "noaux_tc" : "greedy";
  if (const std::string method = fields.text_or("topk_method", usual); method != usual) {
    throw bad_input("The field 'topk_method' of config.json is '" + printable(method) + "'; with scores by " + scores +
                    " only " + usual + " is supported.");
  }
  config.has_choice_bias = config.router_has_sigmoid;
  config.shares_among_chosen = fields.boolean_or("norm_topk_prob", config.router_has_sigmoid);
  config.share_factor = static_cast<float>(fields.number_or("routed_scaling_factor", 1));
  if (!config.router_has_sigmoid) return;  // which does not look at groups
  config.expert_groups = fields.u32_or("n_group", 1);
  config.expert_groups_used = fields.u32_or("topk_group", 1);
}

}  // namespace

void read_hf_routed_experts(const JsonFields& fields, bool router_has_sigmoid, ModelConfig& config) {
  config.unread_layers = std::min(fields.u32_or("num_nextn_predict_layers", 0), 64u);  // each has names of its own
  if (fields.u32_or("n_routed_experts", 0) == 0) return;
  config.experts = fields.u32("n_routed_experts");
  config.experts_used = fields.u32("num_experts_per_tok");
  config.expert_ffn = fields.u32("moe_intermediate_size");
  refuse_other("field 'moe_layer_freq' of config.json", fields.u32_or("moe_layer_freq", 1), 1);
  set_layers_with_experts(fields.u32_or("first_k_dense_replace", 0), config);
  if (fields.has("mlp_layer_types")) {
    config.has_experts = fields.of_layers("mlp_layer_types", config.layers, "sparse", "dense");
  }
  set_shared_width(fields.u32_or("n_shared_experts", 0), config);
  read_hf_router(fields, router_has_sigmoid, config);
}

void leave_out_further_layers(const GgufFile& file, std::string_view prefix, ModelConfig& config) {
  const std::string key = std::string(prefix) + ".nextn_predict_layers";
  const uint32_t further = file.u32_if(key).value_or(0);
  if (further >= config.layers) {
    throw bad_input("The metadata '" + key + "' is " + std::to_string(further) + "; less than '" + std::string(prefix) +
                    ".block_count', " + std::to_string(config.layers) + ", is allowed.");
  }
  config.layers -= further;
  config.unread_layers = further;
  for (std::vector<uint32_t>* by_layer : {&config.layer_ffn, &config.layer_heads, &config.layer_kv_heads}) {
    if (!by_layer->empty()) by_layer->resize(config.layers);
  }
}

void read_gguf_routed_experts(const GgufFile& file, std::string_view prefix, bool router_has_sigmoid,
                              ModelConfig& config) {
  const auto full = [&](std::string_view key) { return std::string(prefix) + "." + std::string(key); };
  const auto u32_or = [&](std::string_view key, uint32_t other) { return file.u32_if(full(key)).value_or(other); };
  leave_out_further_layers(file, prefix, config);
  if (u32_or("expert_count", 0) == 0) return;
  config.experts = file.u32(full("expert_count"));
  config.experts_used = file.u32(full("expert_used_count"));
  config.expert_ffn = file.u32(full("expert_feed_forward_length"));
  set_layers_with_experts(u32_or("leading_dense_block_count", 0), config);
  set_shared_width(u32_or("expert_shared_count", 0), config);
  // Some files of GLM-4.7-Flash do not state the function; only routers with a sigmoid have a bias of the choice.
  constexpr uint32_t softmax = 1, sigmoid = 2;
  config.has_choice_bias = std::ranges::any_of(
      file.tensors(), [](const TensorView& tensor) { return tensor.name.find(".exp_probs_b") != std::string::npos; });
  const bool is_usual = config.has_choice_bias || router_has_sigmoid;
  const uint32_t function = u32_or("expert_gating_func", is_usual ? sigmoid : softmax);
  if (function != softmax && function != sigmoid) {
    throw bad_input("The metadata '" + full("expert_gating_func") + "' is " + std::to_string(function) +
                    "; 1 (softmax) and 2 (sigmoid) are supported.");
  }
  config.router_has_sigmoid = function == sigmoid;
  config.shares_among_chosen = file.boolean_if(full("expert_weights_norm")).value_or(false);
  config.share_factor = static_cast<float>(file.number_if(full("expert_weights_scale")).value_or(1));
  config.expert_groups = u32_or("expert_group_count", 1);
  config.expert_groups_used = u32_or("expert_group_used_count", 1);
  if (config.router_has_sigmoid) return;
  refuse_other("metadata '" + full("expert_group_count") + "' with scores by softmax", config.expert_groups, 1);
}

}  // namespace canopy
