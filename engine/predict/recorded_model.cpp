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
  const auto add = [](std::string name, std::vector<const TensorView*> parts, WeightLayout layout,
                      std::vector<uint32_t> rows = {}) {
    return plan_matrix(std::move(name), std::move(parts), layout, std::move(rows));
  };
  WeightPlan plan;
  plan.token_embd = plan_matrix("token_embd", {&require("token_embd", config.vocab, config.hidden)});
  const QkvJoin join = shape.taps > 0 ? QkvJoin::keys_values : QkvJoin::all;
  for (uint32_t n = 0; n < config.layers; ++n) plan.layers.push_back(plan_layer(config, n, join, require, add));
  if (!config.tied_head) {
    plan.output.push_back(plan_matrix("output", {&require("output", config.vocab, config.hidden)}));
  }
  return plan;
}

}  // namespace

RecordedModel::RecordedModel(const ModelFile& file) : config_(file.config()), layers_(layer_specs(config_)) {
  make_weights(plan_weights(file, device_));
}

RecordedModel::RecordedModel(const NamedShape& shape) : config_(shape.config), layers_(layer_specs(config_)) {
  std::deque<TensorView> tensors;  // the plan points to them
  make_weights(plan_of_shape(shape, tensors));
  taps_ = shape.taps;
  if (taps_ == 0) return;
  TensorView& features = tensors.emplace_back();
  features.name = "fc";
  features.rank = 2;
  features.shape = {config_.hidden, uint64_t{taps_} * config_.hidden};
  features.type = type_of_tensor(shape, "fc", features.shape[1]);
  features_weight_ = make_matrix(plan_matrix("fc", {&features}));
  features_norm_ = device_.allocate(config_.hidden * sizeof(float), "norm");
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
    if (!planned.gate.empty()) layer.gate = make_matrix(planned.gate[0]);
    if (layers_[n].mixer == Mixer::gated_delta_net) {
      const DeltaNetConfig& net = config_.delta_net;
      layer.taps = norm(uint64_t{net.channels()} * net.taps);
      layer.decay_bias = norm(net.value_heads);
      layer.decay_rate = norm(net.value_heads);
      layer.state_norm = norm(net.value_dim);
    }
    if (layers_[n].qk_norm) {
      layer.q_norm = norm(config_.head_dim);
      layer.k_norm = norm(config_.head_dim);
    }
    layer.attn_output = make_matrix(planned.attn_output);
    layer.ffn_norm = norm(config_.hidden);
    if (layers_[n].post_norms) {
      layer.attn_post_norm = norm(config_.hidden);
      layer.ffn_post_norm = norm(config_.hidden);
    }
    if (!planned.router.empty()) {
      layer.router = norm(uint64_t{config_.experts + (layers_[n].shared_expert ? 1 : 0)} * config_.hidden);
    }
    layer.gate_up = make_matrix(planned.gate_up);
    layer.ffn_down = make_matrix(planned.ffn_down);
    if (layers_[n].shared_expert) {
      layer.shared_gate_up = make_matrix(planned.shared_gate_up[0]);
      layer.shared_down = make_matrix(planned.shared_down[0]);
    }
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
  limits_.states = config_.recurrent_layers() > 0 ? kFewestStates : 0;
  buffers_ = allocate_pass_buffers(device_, config_, limits_);
  cache_ = std::make_unique<KvCaches>(device_, config_, limits_, "K/V");
  if (limits_.states > 0) recurrent_ = std::make_unique<RecurrentMemory>(device_, config_, limits_);
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
  shape.recurrent = limits_.states > 0;
  shape.expert_layers = config_.layers_with_experts();
  parts_ = make_pass_parts(device_, buffers_, shape);
  const ForwardContext model{.config = config_,
                             .layers = layers_,
                             .weights = weights_,
                             .embedding = *weights_.token_embd,
                             .head = weights_.head(),
                             .buffers = buffers_,
                             .parts = parts_,
                             .cache = *cache_,
                             .aux_layers = {},
                             .embedding_scale = config_.embedding_scale * config_.residual_scale,
                             .recurrent = recurrent_.get()};
  Recorder record;
  record_forward(record, model, shape);
  return record.finish();
}

// As Drafter records it.
OpList RecordedModel::record_injection(uint32_t rows) {
  if (taps_ == 0) throw bad_input("The injection of features was to be recorded of a model that is no drafter.");
  if (rows == 0 || rows > kMaxWidth) {
    throw bad_input("An injection of " + std::to_string(rows) + " features was to be recorded; allowed: 1 to " +
                    std::to_string(kMaxWidth) + ".");
  }
  make_buffers(rows, 1);
  const uint32_t width = taps_ * config_.hidden;
  injection_.features = device_.allocate(uint64_t{rows} * width * sizeof(float), "features");
  injection_.projected = device_.allocate(uint64_t{rows} * config_.hidden * sizeof(float), "projected features");
  injection_.rows = device_.allocate(uint64_t{rows} * sizeof(Row), "rows of features");
  injection_.normed_features = device_.allocate_activations(rows, width, "features");
  injection_.context = device_.allocate_activations(rows, config_.hidden, "context");
  Recorder record;
  record(NormRowsArgs{
      .width = rows, .in = injection_.features.get(), .norm = {}, .out = injection_.normed_features.get()});
  record(LinearArgs{.width = rows,
                    .weight = features_weight_.get(),
                    .in = injection_.normed_features.get(),
                    .out = injection_.projected.get(),
                    .stride = config_.hidden,
                    .offset = 0});
  record(NormRowsArgs{.width = rows,
                      .in = injection_.projected.get(),
                      .norm = {features_norm_.get()},
                      .out = injection_.context.get()});
  for (uint32_t n = 0; n < config_.layers; ++n) {
    const LayerWeights& weights = weights_.layers[n];
    std::vector<const Weight*> keys_values;
    for (size_t i = 1; i < weights.qkv.size(); ++i) keys_values.push_back(weights.qkv[i].get());
    record(ProjectHeadsArgs{.weights = keys_values,
                            .in = injection_.context.get(),
                            .in_norm_eps = config_.rms_eps,
                            .qkv = buffers_.qkv.get(),
                            .heads = {.width = rows,
                                      .qkv = buffers_.qkv.get(),
                                      .rows = injection_.rows.get(),
                                      .rotation = buffers_.rotation.get(),
                                      .k_norm = weights.k_norm.get(),
                                      .norm_eps = config_.rms_eps,
                                      .heads = 0,
                                      .shape = cache_->shape(n),
                                      .interleaved = layers_[n].rope == RopeLayout::interleaved,
                                      .cache = &cache_->layer(n)}});
  }
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
