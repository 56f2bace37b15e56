#include "engine/predict/recorded_model.h"

#include <deque>
#include <filesystem>

#include "engine/base/error.h"
#include "engine/base/mapped_file.h"
#include "engine/format/architecture.h"

namespace canopy::predict {
namespace {

/// The plan of a shape's weights, with tensors that have a name, a type and a shape and no bytes. `tensors` holds them.
WeightPlan plan_of_shape(const NamedShape& shape, std::deque<TensorView>& tensors) {
  const ModelConfig& config = shape.config;
  const auto require = [&](const std::string& name, uint64_t rows, uint64_t cols) -> const TensorView& {
    TensorView& tensor = tensors.emplace_back();
    tensor.name = name;
    tensor.type = type_of_tensor(shape, name, cols);
    tensor.rank = 2;
    tensor.shape = {rows, cols};
    return tensor;
  };
  const auto add = [](std::string name, std::vector<const TensorView*> parts, WeightLayout layout) {
    return plan_matrix(std::move(name), std::move(parts), layout);
  };
  WeightPlan plan;
  plan.token_embd = plan_matrix("token_embd", {&require("token_embd", config.vocab, config.hidden)});
  for (uint32_t n = 0; n < config.layers; ++n) plan.layers.push_back(plan_layer(config, n, QkvJoin::all, require, add));
  if (!config.tied_head) {
    plan.output.push_back(plan_matrix("output", {&require("output", config.vocab, config.hidden)}));
  }
  return plan;
}

}  // namespace

RecordedModel::RecordedModel(const ModelFile& file) : config_(file.config()), layers_(layer_specs(config_)) {
  require_supported(layers_);
  make_weights(plan_weights(file, device_));
}

RecordedModel::RecordedModel(const NamedShape& shape) : config_(shape.config), layers_(layer_specs(config_)) {
  require_supported(layers_);
  std::deque<TensorView> tensors;  // the plan points to them
  make_weights(plan_of_shape(shape, tensors));
}

std::unique_ptr<Weight> RecordedModel::make_matrix(const MatrixPlan& plan) {
  return device_.make_weight(plan.device_parts(), plan.layout, plan.name);
}

void RecordedModel::make_weights(const WeightPlan& plan) {
  const auto norm = [&](uint64_t count) { return device_.allocate(count * sizeof(float), "norm"); };
  weights_.token_embd = make_matrix(plan.token_embd);
  for (uint32_t n = 0; n < config_.layers; ++n) {
    const LayerPlan& planned = plan.layers[n];
    LayerWeights layer;
    layer.attn_norm = norm(config_.hidden);
    for (const MatrixPlan& part : planned.qkv) layer.qkv.push_back(make_matrix(part));
    if (layers_[n].qk_norm) {
      layer.q_norm = norm(config_.head_dim);
      layer.k_norm = norm(config_.head_dim);
    }
    layer.attn_output = make_matrix(planned.attn_output);
    layer.ffn_norm = norm(config_.hidden);
    layer.gate_up = make_matrix(planned.gate_up);
    layer.ffn_down = make_matrix(planned.ffn_down);
    weights_.layers.push_back(std::move(layer));
  }
  weights_.output_norm = norm(config_.hidden);
  if (!plan.output.empty()) weights_.output = make_matrix(plan.output[0]);
}

void RecordedModel::make_buffers(uint32_t width, uint32_t head_rows) {
  if (limits_.max_width == width && limits_.head_rows == head_rows) return;
  limits_.context = 1;  // the ops name the longest row; how many positions the cache has room for is in none of them
  limits_.tree_slots = width;
  limits_.max_width = width;
  limits_.head_rows = head_rows;
  buffers_ = allocate_pass_buffers(device_, config_, limits_);
  cache_ = device_.allocate_kv(kv_shape(config_, limits_), config_.layers, "K/V");
}

OpList RecordedModel::record(uint32_t width, uint32_t context, uint32_t head_rows) {
  if (width == 0 || width > kMaxWidth) {
    throw bad_input("A pass of " + std::to_string(width) + " rows was to be recorded; allowed: 1 to " +
                    std::to_string(kMaxWidth) + ".");
  }
  make_buffers(width, head_rows == 0 ? width : std::min(head_rows, width));
  PassShape shape;
  shape.width = width;
  shape.max_positions = context + width;
  shape.head = HeadOutput::argmax;
  shape.head_rows = width;
  shape.all_rows = true;
  parts_ = make_pass_parts(device_, buffers_, shape);
  const ForwardContext model{.config = config_,
                             .layers = layers_,
                             .weights = weights_,
                             .embedding = *weights_.token_embd,
                             .head = weights_.head(),
                             .buffers = buffers_,
                             .parts = parts_,
                             .cache = *cache_,
                             .kv = kv_shape(config_, limits_),
                             .aux_layers = {}};
  Recorder record;
  record_forward(record, model, shape);
  return record.finish();
}

NamedModelPasses open_for_prediction(const std::string& file_or_shape) {
  const std::filesystem::path path = file_or_shape;
  if (std::filesystem::exists(path)) {
    const ModelFile file = ModelFile::open(path);
    return {std::make_unique<RecordedModel>(file),
            path.filename().empty() ? path.parent_path().filename().string() : path.filename().string()};
  }
  const bool is_path = path.has_parent_path() || path.extension() == ".gguf" || path.extension() == ".safetensors";
  if (is_path) throw bad_input("There is no model at " + shown(path) + ".");
  const NamedShape shape = model_shape(file_or_shape);
  return {std::make_unique<RecordedModel>(shape), shape.name};
}

}  // namespace canopy::predict
