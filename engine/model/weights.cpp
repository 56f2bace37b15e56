#include "engine/model/weights.h"

#include <string>

#include "engine/format/architecture.h"
#include "engine/model/rotation.h"
#include "engine/model/tensor_loader.h"

namespace canopy {

namespace {

void load_recurrence(TensorLoader& tensors, const RequireTensor& require, const ModelConfig& config, uint32_t n,
                     LayerWeights& layer) {
  const DeltaNetConfig& net = config.delta_net;
  const auto tensor = [&](const char* name, uint64_t rows, uint64_t cols) -> const TensorView& {
    return require("blk." + std::to_string(n) + "." + name, rows, cols);
  };
  layer.taps = tensors.norm(tensor("ssm_conv1d", net.channels(), net.taps));
  layer.decay_bias = tensors.norm(tensor("ssm_dt.bias", 1, net.value_heads));
  layer.state_norm = tensors.norm(tensor("ssm_norm", 1, net.value_dim));
  layer.decay_rate = tensors.rates(tensor("ssm_a", 1, net.value_heads), config.has_trained_form);
}

void load_expert_biases(TensorLoader& tensors, const RequireTensor& require, const ModelConfig& config, uint32_t n,
                        LayerWeights& layer) {
  const auto tensor = [&](const char* name, uint64_t rows, uint64_t cols) -> const TensorView& {
    return require("blk." + std::to_string(n) + "." + name, rows, cols);
  };
  layer.router_bias = tensors.bias(tensor("ffn_gate_inp.bias", 1, config.experts));
  layer.gate_up_bias = tensors.paired_bias(tensor("ffn_gate_exps.bias", config.experts, config.expert_ffn),
                                           tensor("ffn_up_exps.bias", config.experts, config.expert_ffn));
  layer.down_bias = tensors.bias(tensor("ffn_down_exps.bias", config.experts, config.hidden));
}

/// head_order() of all queries and keys of layer n, the values behind them; empty: as they are.
std::vector<uint32_t> projection_order(const ModelConfig& config, uint32_t n) {
  const std::vector<uint32_t> order = head_order(config);
  std::vector<uint32_t> all;
  if (order.empty()) return all;
  for (uint32_t h = 0; h < config.heads_of(n) + config.kv_heads_of(n); ++h) {
    for (const uint32_t i : order) all.push_back(h * config.head_dim + i);
  }
  for (uint32_t i = 0; i < config.kv_width_of(n); ++i) all.push_back(static_cast<uint32_t>(all.size()));
  return all;
}

}  // namespace

LayerWeights load_layer(TensorLoader& tensors, const RequireTensor& require, const ModelConfig& config,
                        const LayerSpec& spec, const LayerPlan& plan, uint32_t n) {
  const float offset = config.has_trained_form ? 1.0f : 0.0f;  // what norms are stored without
  const auto norm = [&](const char* name, uint32_t count) {
    return tensors.norm(require("blk." + std::to_string(n) + "." + name, 1, count), offset);
  };
  LayerWeights layer;
  layer.attn_norm = norm("attn_norm", config.hidden);
  for (const MatrixPlan& part : plan.qkv) layer.qkv.push_back(tensors.matrix(part));
  if (spec.mixer == Mixer::gated_delta_net) load_recurrence(tensors, require, config, n, layer);
  if (spec.qkv_bias) {
    const std::string attention = "blk." + std::to_string(n) + ".attn_";
    const TensorView* parts[] = {&require(attention + "q.bias", 1, config.q_width_of(n)),
                                 &require(attention + "k.bias", 1, config.kv_width_of(n)),
                                 &require(attention + "v.bias", 1, config.kv_width_of(n))};
    layer.qkv_bias = tensors.bias(parts, projection_order(config, n));
  }
  if (spec.qk_norm) {
    const std::vector<uint32_t> order = head_order(config);
    const auto head_norm = [&](const char* name) {
      return tensors.norm(require("blk." + std::to_string(n) + "." + name, 1, config.head_dim), offset, order);
    };
    layer.q_norm = head_norm("attn_q_norm");
    layer.k_norm = head_norm("attn_k_norm");
  }
  if (!plan.gate.empty()) layer.gate = tensors.matrix(plan.gate[0]);
  layer.attn_output = tensors.matrix(plan.attn_output);
  if (spec.output_bias) {
    layer.output_bias = tensors.bias(require("blk." + std::to_string(n) + ".attn_output.bias", 1, config.hidden));
  }
  if (spec.sinks)
    layer.sinks = tensors.sinks(require("blk." + std::to_string(n) + ".attn_sinks", 1, config.heads_of(n)));
  layer.ffn_norm = norm("ffn_norm", config.hidden);
  if (spec.post_norms) {
    const auto post_norm = [&](const char* name) {
      const TensorView& tensor = require("blk." + std::to_string(n) + "." + name, 1, config.hidden);
      return tensors.norm(tensor, offset, {}, config.residual_scale);
    };
    layer.attn_post_norm = post_norm("attn_post_norm");
    layer.ffn_post_norm = post_norm("ffn_post_norm");
  }
  if (!plan.router.empty()) layer.router = tensors.router(plan.router);
  if (spec.expert_bias) load_expert_biases(tensors, require, config, n, layer);
  layer.gate_up = tensors.matrix(plan.gate_up);
  layer.ffn_down = tensors.matrix(plan.ffn_down);
  if (!plan.shared_gate_up.empty()) layer.shared_gate_up = tensors.matrix(plan.shared_gate_up[0]);
  if (!plan.shared_down.empty()) layer.shared_down = tensors.matrix(plan.shared_down[0]);
  return layer;
}

void append_in_load_order(const LayerPlan& plan, std::vector<const MatrixPlan*>& matrices) {
  for (const MatrixPlan& part : plan.qkv) matrices.push_back(&part);
  for (const MatrixPlan& gate : plan.gate) matrices.push_back(&gate);
  for (const MatrixPlan* matrix : {&plan.attn_output, &plan.gate_up, &plan.ffn_down}) matrices.push_back(matrix);
  for (const MatrixPlan& matrix : plan.shared_gate_up) matrices.push_back(&matrix);
  for (const MatrixPlan& matrix : plan.shared_down) matrices.push_back(&matrix);
}

std::vector<const MatrixPlan*> in_load_order(const WeightPlan& plan) {
  std::vector<const MatrixPlan*> matrices = {&plan.token_embd};
  for (const LayerPlan& layer : plan.layers) append_in_load_order(layer, matrices);
  for (const MatrixPlan& head : plan.output) matrices.push_back(&head);
  return matrices;
}

Weights load_weights(const ModelFile& file, const WeightPlan& plan, Device& device, const LoadCallbacks& callbacks) {
  const ModelConfig& config = file.config();
  const auto require = [&](const std::string& name, uint64_t rows, uint64_t cols) -> const TensorView& {
    return file.require(name, rows, cols);
  };
  LoadMonitor monitor(callbacks, plan.file_bytes);
  TensorLoader tensors(device, in_load_order(plan), monitor, [&file] { file.check_unchanged(); });
  const std::vector<LayerSpec> specs = layer_specs(config);
  Weights weights;
  weights.token_embd = tensors.matrix(plan.token_embd);
  for (uint32_t n = 0; n < config.layers; ++n) {
    weights.layers.push_back(load_layer(tensors, require, config, specs[n], plan.layers[n], n));
  }
  weights.output_norm =
      tensors.norm(file.require("output_norm", 1, config.hidden), config.has_trained_form ? 1.0f : 0.0f);
  if (!plan.output.empty()) weights.output = tensors.matrix(plan.output[0]);
  monitor.report();
  file.check_unchanged();  // what is wrong with the file was wrong when it was read
  return weights;
}

}  // namespace canopy
