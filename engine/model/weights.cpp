#include "engine/model/weights.h"

#include <string>

#include "engine/format/architecture.h"
#include "engine/model/tensor_loader.h"

namespace canopy {

LayerWeights load_layer(TensorLoader& tensors, const RequireTensor& require, const ModelConfig& config,
                        const LayerSpec& spec, const LayerPlan& plan, uint32_t n) {
  const auto norm = [&](const char* name, uint32_t count) {
    return tensors.norm(require("blk." + std::to_string(n) + "." + name, 1, count));
  };
  LayerWeights layer;
  layer.attn_norm = norm("attn_norm", config.hidden);
  for (const MatrixPlan& part : plan.qkv) layer.qkv.push_back(tensors.matrix(part));
  if (spec.qkv_bias) {
    const std::string attention = "blk." + std::to_string(n) + ".attn_";
    const TensorView* parts[] = {&require(attention + "q.bias", 1, config.q_width()),
                                 &require(attention + "k.bias", 1, config.kv_width()),
                                 &require(attention + "v.bias", 1, config.kv_width())};
    layer.qkv_bias = tensors.bias(parts);
  }
  if (spec.qk_norm) {
    layer.q_norm = norm("attn_q_norm", config.head_dim);
    layer.k_norm = norm("attn_k_norm", config.head_dim);
  }
  layer.attn_output = tensors.matrix(plan.attn_output);
  layer.ffn_norm = norm("ffn_norm", config.hidden);
  if (plan.router != nullptr) layer.router = tensors.router(*plan.router);
  layer.gate_up = tensors.matrix(plan.gate_up);
  layer.ffn_down = tensors.matrix(plan.ffn_down);
  return layer;
}

void append_in_load_order(const LayerPlan& plan, std::vector<const MatrixPlan*>& matrices) {
  for (const MatrixPlan& part : plan.qkv) matrices.push_back(&part);
  for (const MatrixPlan* matrix : {&plan.attn_output, &plan.gate_up, &plan.ffn_down}) matrices.push_back(matrix);
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
  weights.output_norm = tensors.norm(file.require("output_norm", 1, config.hidden));
  if (!plan.output.empty()) weights.output = tensors.matrix(plan.output[0]);
  monitor.report();
  file.check_unchanged();  // what is wrong with the file was wrong when it was read
  return weights;
}

}  // namespace canopy
