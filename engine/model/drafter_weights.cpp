#include "engine/model/drafter_weights.h"

#include <utility>

#include "engine/base/checked.h"
#include "engine/base/error.h"

namespace canopy {
namespace {

RequireTensor require_from(const DrafterFile& file) {
  return [&file](const std::string& name, uint64_t rows, uint64_t cols) -> const TensorView& {
    return file.require(name, rows, cols);
  };
}

uint64_t features_width(const DrafterConfig& config) {
  return uint64_t{config.transformer.hidden} * config.aux_layers.size();
}

const TensorView& head_of(const ModelFile& target) {
  const ModelConfig& config = target.config();
  return target.require(config.tied_head ? "token_embd" : "output", config.vocab, config.hidden);
}

MatrixPlan plan_head(const DrafterFile& file, const HeadSource& target) {
  const DrafterConfig& config = file.config();
  if (config.own_head) {
    return plan_matrix("head", {&file.require("output", config.draft_token_ids.size(), config.transformer.hidden)});
  }
  if (target.file == nullptr) {
    throw bad_input("The drafter's head is " + std::to_string(config.draft_token_ids.size()) +
                    " rows of its target's; they are read from the target's file, which was not given.");
  }
  return plan_rows("drafted rows of the head", head_of(*target.file), config.draft_token_ids, target.type);
}

}  // namespace

DrafterPlan plan_drafter(const DrafterFile& file, const Device& device, const HeadSource& target) {
  const ModelConfig& config = file.config().transformer;
  const RequireTensor require = require_from(file);
  DrafterPlan plan;
  const auto count = [&](MatrixPlan matrix) {
    plan.file_bytes = checked_add(plan.file_bytes, matrix.file_bytes(), "size of the drafter's weights");
    plan.device_bytes = checked_add(plan.device_bytes, device.weight_bytes(matrix.device_parts(), matrix.layout),
                                    "size of the drafter's weights");
    return matrix;
  };
  const auto add = [&](std::string name, std::vector<const TensorView*> parts, WeightLayout layout,
                       std::vector<uint32_t> rows = {}) {
    return count(plan_matrix(std::move(name), std::move(parts), layout, std::move(rows)));
  };
  plan.fc = add("fc", {&require("fc", config.hidden, features_width(file.config()))}, WeightLayout::stacked);
  for (uint32_t n = 0; n < config.layers; ++n) {
    plan.layers.push_back(plan_layer(config, n, QkvJoin::keys_values, require, add));
  }
  if (!file.config().draft_token_ids.empty()) plan.head.push_back(count(plan_head(file, target)));
  const uint64_t norms = uint64_t{config.layers} * (2 * config.hidden + 2 * config.head_dim) + 2 * config.hidden;
  plan.device_bytes += norms * sizeof(float);
  return plan;
}

DrafterWeights load_drafter_weights(const DrafterFile& file, const DrafterPlan& plan, Device& device,
                                    const LoadCallbacks& callbacks) {
  const ModelConfig& config = file.config().transformer;
  const RequireTensor require = require_from(file);
  LoadMonitor monitor(callbacks, plan.file_bytes);
  std::vector<const MatrixPlan*> matrices = {&plan.fc};
  for (const LayerPlan& layer : plan.layers) append_in_load_order(layer, matrices);
  for (const MatrixPlan& head : plan.head) matrices.push_back(&head);
  TensorLoader tensors(device, matrices, monitor, [&file] { file.check_unchanged(); });
  const std::vector<LayerSpec> specs = layer_specs(file.config());
  DrafterWeights weights;
  weights.fc = tensors.matrix(plan.fc);
  weights.hidden_norm = tensors.norm(require("hidden_norm", 1, config.hidden));
  for (uint32_t n = 0; n < config.layers; ++n) {
    weights.body.layers.push_back(load_layer(tensors, require, config, specs[n], plan.layers[n], n));
  }
  weights.body.output_norm = tensors.norm(require("output_norm", 1, config.hidden));
  if (!plan.head.empty()) weights.body.output = tensors.matrix(plan.head[0]);
  monitor.report();
  file.check_unchanged();  // what is wrong with the file was wrong when it was read
  return weights;
}

}  // namespace canopy
