#include "engine/whatif/prediction.h"

#include <algorithm>
#include <deque>
#include <filesystem>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/mapped_file.h"
#include "engine/base/numbers.h"
#include "engine/whatif/op_work.h"
#include "engine/whatif/processor_work.h"

namespace canopy::predict {
namespace {

class DryBuffer final : public Buffer {
 public:
  explicit DryBuffer(uint64_t bytes) : bytes_(bytes) {}
  uint64_t bytes() const override { return bytes_; }

 private:
  uint64_t bytes_;
};

[[noreturn]] void refuse(const char* wish) {
  throw bad_input(std::string("A device that only records was asked to ") + wish +
                  "; it has no memory and no kernels.");
}

}  // namespace

DryDevice::DryDevice(uint64_t available) : available_(available) {
  info_.name = "recording only";
  info_.type = "reference";
}

MemoryInfo DryDevice::memory() const {
  return {available_, available_};
}

std::unique_ptr<Buffer> DryDevice::allocate(uint64_t bytes, std::string_view) {
  return std::make_unique<DryBuffer>(bytes);
}

std::unique_ptr<Buffer> DryDevice::part(Buffer& whole, uint64_t offset, uint64_t bytes, std::string_view name) {
  check_part(whole, offset, bytes, name);
  return std::make_unique<DryBuffer>(bytes);
}

std::unique_ptr<Activations> DryDevice::allocate_activations(uint32_t max_width, uint32_t cols, std::string_view) {
  return std::make_unique<Activations>(max_width, cols);
}

std::unique_ptr<KvCache> DryDevice::allocate_kv(const KvShape&, uint32_t layers, std::string_view) {
  std::vector<std::unique_ptr<KvLayer>> all(layers);
  for (std::unique_ptr<KvLayer>& layer : all) layer = std::make_unique<KvLayer>();
  return std::make_unique<KvCache>(std::move(all));
}

std::unique_ptr<Weight> DryDevice::make_weight(std::span<const WeightPart> parts, WeightLayout, std::string_view name) {
  if (parts.empty()) throw bad_input("The weight \"" + std::string(name) + "\" has no parts; one or more are allowed.");
  uint64_t rows = 0;
  for (const WeightPart& part : parts) rows += part.rows;
  return std::make_unique<Weight>(parts[0].type, checked_cast<uint32_t>(rows, "number of rows of " + std::string(name)),
                                  parts[0].cols);
}

uint64_t DryDevice::weight_bytes(std::span<const WeightPart> parts, WeightLayout) const {
  uint64_t bytes = 0;
  for (const WeightPart& part : parts) bytes += row_bytes(part) * part.rows;
  return bytes;
}

uint64_t DryDevice::activation_bytes(uint32_t max_width, uint32_t cols) const {
  return uint64_t{max_width} * cols * sizeof(float);
}

void DryDevice::write(Buffer&, uint64_t, std::span<const std::byte>) {}
void DryDevice::write_activations(Activations&, uint32_t, std::span<const float>) {}
void DryDevice::write_kv(KvLayer&, bool, uint32_t, std::span<const float>) {}

void DryDevice::read_all(std::span<const BufferRead>) {
  refuse("read a buffer");
}
std::vector<float> DryDevice::read_activations(const Activations&, uint32_t) {
  refuse("read activations");
}
std::vector<float> DryDevice::read_kv(const KvLayer&, bool, uint32_t, uint32_t) {
  refuse("read K/V");
}
DevicePeak DryDevice::measure_peak() {
  refuse("measure its rates");
}
double DryDevice::sample_fma_rate() {
  refuse("measure its rates");
}
std::unique_ptr<Commands> DryDevice::compile(std::span<const Op>, const std::stop_token&) {
  refuse("compile ops");
}
bool DryDevice::run(Commands&, const std::stop_token&) {
  refuse("run commands");
}
void DryDevice::start(Commands&) {
  refuse("run commands");
}

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
  if (config.layer_inputs != 0) {
    const uint64_t all = uint64_t{config.layers} * config.layer_inputs;
    plan.layer_inputs.push_back(
        plan_matrix("per_layer_token_embd", {&require("per_layer_token_embd", config.vocab, all)}));
    plan.layer_inputs.push_back(
        plan_matrix("per_layer_model_proj", {&require("per_layer_model_proj", all, config.hidden)}));
  }
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
  const auto matrix = [&](const char* name, uint64_t rows, uint64_t cols) {
    TensorView& tensor = tensors.emplace_back();
    tensor.name = name;
    tensor.rank = 2;
    tensor.shape = {rows, cols};
    tensor.type = type_of_tensor(shape, name, cols);
    return make_matrix(plan_matrix(name, {&tensor}));
  };
  if (shape.markov_rank > 0) {
    markov_tables_[0] = matrix("markov_w1", config_.vocab, shape.markov_rank);
    markov_tables_[1] = matrix("markov_w2", config_.vocab, shape.markov_rank);
  }
  conv_.taps = shape.row_conv_taps;
  conv_.group = shape.row_conv_group;
  if (conv_.taps == 0) return;
  const uint64_t kernels = 2 * uint64_t{conv_.taps} * (config_.hidden / conv_.group);
  for (LayerWeights& layer : weights_.layers) {
    for (auto* const half : {&layer.attn_conv, &layer.ffn_conv}) {
      *half = std::make_unique<ConvWeights>();
      (*half)->project = matrix(half == &layer.attn_conv ? "attn_conv_proj" : "ffn_conv_proj", kernels, config_.hidden);
      (*half)->base = device_.allocate(2 * uint64_t{conv_.taps} * config_.hidden * sizeof(float), "base kernels");
    }
  }
}

std::unique_ptr<Weight> RecordedModel::make_matrix(const MatrixPlan& plan) {
  return device_.make_weight(plan.device_parts(), plan.layout, plan.name);
}

std::unique_ptr<LatentWeights> RecordedModel::make_latent(const LatentPlan& plan) {
  const auto norm = [&](uint64_t count) { return device_.allocate(count * sizeof(float), "norm"); };
  auto latent = std::make_unique<LatentWeights>();
  if (!plan.query_latent.empty()) {
    latent->query_latent = make_matrix(plan.query_latent[0]);
    latent->query_norm = norm(config_.latent.query_rank);
  }
  latent->query_keys = make_matrix(plan.query_keys);
  latent->query_turned = make_matrix(plan.query_turned);
  latent->latent = make_matrix(plan.latent);
  latent->turned = make_matrix(plan.turned);
  latent->latent_norm = norm(config_.latent.rank);
  latent->keys = make_matrix(plan.keys);
  latent->values = make_matrix(plan.values);
  return latent;
}

void RecordedModel::make_weights(const WeightPlan& plan) {
  const auto norm = [&](uint64_t count) { return device_.allocate(count * sizeof(float), "norm"); };
  weights_.token_embd = make_matrix(plan.token_embd);
  for (uint32_t n = 0; n < config_.layers; ++n) {
    const LayerPlan& planned = plan.layers[n];
    LayerWeights layer;
    layer.attn_norm = norm(config_.hidden);
    for (const MatrixPlan& part : planned.qkv) layer.qkv.push_back(make_matrix(part));
    if (!planned.latent.empty()) layer.latent = make_latent(planned.latent[0]);
    if (!planned.gate.empty()) layer.gate = make_matrix(planned.gate[0]);
    if (layers_[n].mixer == Mixer::short_convolution) {
      layer.taps = norm(uint64_t{config_.hidden} * config_.conv_taps);
    } else if (config_.is_recurrent(n)) {
      const DeltaNetConfig& net = config_.delta_net;
      layer.taps = norm(uint64_t{net.channels()} * net.taps);
      layer.decay_bias = norm(net.value_heads);
      layer.decay_rate = norm(net.value_heads);
      layer.state_norm = norm(net.scans ? net.values() : net.value_dim);
      if (net.has_conv_bias) layer.conv_bias = norm(net.channels());
      if (net.scans) layer.skip = norm(net.value_heads);
    }
    if (layers_[n].qkv_bias && layers_[n].mixer == Mixer::attention) {
      layer.qkv_bias = norm(uint64_t{config_.q_width_of(n)} + 2 * config_.kv_width_of(n));
    }
    if (layers_[n].output_bias) layer.output_bias = norm(config_.hidden);
    if (layers_[n].sinks) layer.sinks = norm(config_.heads_of(n));
    if (layers_[n].expert_bias) {
      layer.router_bias = norm(config_.experts);
      layer.gate_up_bias = norm(uint64_t{config_.experts} * 2 * config_.expert_ffn);
      layer.down_bias = norm(uint64_t{config_.experts} * config_.hidden);
    }
    if (layers_[n].qk_norm) {
      layer.q_norm = norm(config_.head_dim_of(n));
      if (layers_[n].own_kv) layer.k_norm = norm(config_.head_dim_of(n));
    }
    if (layers_[n].v_norm && layers_[n].own_kv) layer.v_norm = norm(config_.head_dim_of(n));
    if (planned.attn_output.is_there()) layer.attn_output = make_matrix(planned.attn_output);
    layer.ffn_norm = norm(config_.hidden);
    if (layers_[n].post_norms) {
      layer.attn_post_norm = norm(config_.hidden);
      layer.ffn_post_norm = norm(config_.hidden);
    }
    if (!planned.router.empty()) {
      const bool has_gate = layers_[n].shared_expert && layers_[n].shared_gate;
      layer.router = norm(uint64_t{config_.experts + (has_gate ? 1 : 0)} * config_.hidden);
      if (layers_[n].choice_bias) layer.choice_bias = norm(config_.experts);
    }
    if (planned.gate_up.is_there()) layer.gate_up = make_matrix(planned.gate_up);
    if (planned.ffn_down.is_there()) layer.ffn_down = make_matrix(planned.ffn_down);
    if (layers_[n].feed_forward == FeedForward::both) {
      layer.router_norm = norm(config_.hidden);
      layer.expert_scales = norm(config_.experts);
      layer.expert_norm = norm(config_.hidden);
      layer.dense_post_norm = norm(config_.hidden);
      layer.expert_post_norm = norm(config_.hidden);
    }
    if (!planned.shared_gate_up.empty()) {
      layer.shared_gate_up = make_matrix(planned.shared_gate_up[0]);
      layer.shared_down = make_matrix(planned.shared_down[0]);
    }
    if (!planned.input.empty()) {
      layer.input_gate = make_matrix(planned.input[0]);
      layer.input_proj = make_matrix(planned.input[1]);
      layer.input_norm = norm(config_.hidden);
    }
    weights_.layers.push_back(std::move(layer));
  }
  weights_.output_norm = norm(config_.hidden);
  if (config_.layer_inputs != 0 || config_.has_experts_beside) {
    weights_.ones = norm(std::max(config_.layers * config_.layer_inputs, config_.hidden));
  }
  if (!plan.layer_inputs.empty()) {
    weights_.layer_embd = make_matrix(plan.layer_inputs[0]);
    weights_.layer_proj = make_matrix(plan.layer_inputs[1]);
    weights_.layer_norm = norm(config_.layer_inputs);
    weights_.embedding_norm = norm(config_.hidden);
  }
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
  if (conv_.taps == 0) return;
  const uint64_t hidden = uint64_t{config_.hidden} * sizeof(float), rows = width;
  conv_.zero = device_.allocate(hidden, "zeros");
  conv_.zero_moves = device_.allocate(rows * 2 * sizeof(uint32_t), "rows of zeros");
  conv_.kernels = device_.allocate(rows * 2 * conv_.taps * (hidden / conv_.group), "kernels of rows");
  for (auto* const buffer : {&conv_.normed, &conv_.mixed, &conv_.branch})
    *buffer = device_.allocate(rows * hidden, "rows");
  conv_.rows = device_.allocate_activations(width, config_.hidden, "rows");
  conv_.spare = device_.allocate_activations(width, config_.hidden, "rows");
}

// As MarkovHead records it.
OpList RecordedModel::record_markov(uint32_t rows) {
  if (!has_markov()) throw bad_input("A Markov head was to be recorded of a model that has none.");
  if (rows == 0 || rows > kMaxWidth) {
    throw bad_input("A Markov head of " + std::to_string(rows) + " rows was to be recorded; allowed: 1 to " +
                    std::to_string(kMaxWidth) + ".");
  }
  make_buffers(rows, rows);
  const Weight &w1 = *markov_tables_[0], &w2 = *markov_tables_[1];
  const uint32_t vocab = w2.rows(), rank = w2.cols(), listed = std::min(32u, vocab);  // as Drafter lists
  const uint64_t word = sizeof(float), many = rows;
  markov_.rows = device_.allocate(many * sizeof(Row), "rows");
  markov_.before = device_.allocate(many * rank * word, "rows of the table");
  markov_.ones = device_.allocate(std::max(rank, vocab) * word, "ones");
  markov_.moves = device_.allocate(many * 2 * word, "places");
  markov_.sums = device_.allocate(many * vocab * word, "logits");
  markov_.ids = device_.allocate(many * listed * word, "tokens");
  markov_.values = device_.allocate(many * listed * word, "their logits");
  markov_.log_sum_exp = device_.allocate(many * word, "sums");
  markov_.activations = device_.allocate_activations(rows, rank, "rows of the table");
  markov_.spare = device_.allocate_activations(rows, vocab, "logits");
  Recorder record;
  record(EmbedArgs{.width = rows,
                   .table = &w1,
                   .rows = markov_.rows.get(),
                   .x = markov_.before.get(),
                   .norm = {markov_.ones.get()},
                   .out = markov_.activations.get()});
  record(CopyRowsArgs{.count = rows,
                      .cols = vocab,
                      .in = buffers_.logits.get(),
                      .moves = markov_.moves.get(),
                      .out = markov_.sums.get()});
  record(LinearAddArgs{.width = rows,
                       .weight = &w2,
                       .in = markov_.activations.get(),
                       .x = markov_.sums.get(),
                       .norm = {markov_.ones.get()},
                       .out = markov_.spare.get()});
  record(TopKArgs{.width = rows,
                  .logits = markov_.sums.get(),
                  .vocab = vocab,
                  .k = listed,
                  .ids = markov_.ids.get(),
                  .values = markov_.values.get(),
                  .log_sum_exp = markov_.log_sum_exp.get()});
  return record.finish();
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
                             .recurrent = recurrent_.get(),
                             .conv = conv_.taps > 0 ? &conv_ : nullptr};
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

namespace {

constexpr uint32_t kWidths[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128};

/// Of rows, ancestor lists and results: a few dozen bytes for each row.
constexpr double kBusBytesPerRow = 256;

/// 0 on a processor, which reads what its host wrote.
double host_us(const DeviceProfile& device, const KernelRules& rules, uint32_t width) {
  if (device.is_processor()) return 0;
  return rules.submissions * (device.submission_us + device.round_trip_us) +
         width * kBusBytesPerRow / (device.bus_gb_s * 1e3);
}

std::string shapes_of(const Op& op) {
  return std::visit([](const auto& args) { return args.shapes(); }, op);
}

std::pair<Work, WorkTime> timed(const Op& op, const KernelRules& rules, const DeviceProfile& device) {
  if (device.is_processor()) return processor_work(op, rules.kernels, device);
  const Work work = work_of(op, rules, device);
  return {work, time_of(work, device)};
}

void add_op(PassPrediction& pass, const Op& op, const Work& work, const WorkTime& time) {
  const std::string shapes = shapes_of(op);
  const auto same = std::ranges::find_if(pass.ops, [&](const OpPrediction& each) {
    return each.name == name_of(op) && each.shapes == shapes && each.each.total == time.total;
  });
  if (same != pass.ops.end()) {
    ++same->count;
  } else {
    pass.ops.push_back({name_of(op), shapes, 1, work.kernel, work.registers, work.shared_bytes, work.workgroups, time});
  }
}

}  // namespace

PassPrediction predict_pass(RecordedModel& model, const DeviceProfile& device, const KernelRules& rules, uint32_t width,
                            uint32_t context) {
  PassPrediction pass;
  pass.width = width;
  double us = 0;
  for (const Op& op : model.record(width, context, 0)) {
    const auto [work, time] = timed(op, rules, device);
    us += time.total;
    pass.weight_bytes += weight_bytes_of(op);
    add_op(pass, op, work, time);
  }
  pass.host_ms = host_us(device, rules, width) / 1e3;
  pass.ms = us / 1e3 + pass.host_ms;
  return pass;
}

double bandwidth_share(const PassPrediction& pass, const DeviceProfile& device) {
  return static_cast<double>(pass.weight_bytes) / (pass.ms * 1e-3) / (device.memory_gb_s * 1e9);
}

std::span<const uint32_t> usual_widths() {
  return kWidths;
}

namespace {

/// Milliseconds of some ops on the device, the host's part left out.
double predict_ops_ms(const OpList& ops, const DeviceProfile& device, const KernelRules& rules) {
  double us = 0;
  for (const Op& op : ops) us += timed(op, rules, device).second.total;
  return us / 1e3;
}

/// Milliseconds of the drafter's pass: features become keys and values, then a block is drafted, in one submission.
double draft_ms(RecordedModel& drafter, const DeviceProfile& device, const KernelRules& rules, const RoundSizes& sizes,
                uint32_t backlog, uint32_t context) {
  double ms = predict_pass(drafter, device, rules, sizes.block, context).ms;
  if (backlog > 0) ms += predict_ops_ms(drafter.record_injection(backlog), device, rules);
  // Behind each token of the likeliest path once.
  if (drafter.has_markov()) ms += (sizes.block - 1) * predict_ops_ms(drafter.record_markov(1), device, rules);
  return ms;
}

}  // namespace

CostTable predict_costs(RecordedModel& target, RecordedModel* drafter, const DeviceProfile& device,
                        const KernelRules& rules, const RoundSizes& sizes) {
  CostTable table;
  const uint32_t last = std::max(16u, sizes.context);
  const auto add = [&](uint32_t width, uint32_t context) {
    table.set_verify(width, context, predict_pass(target, device, rules, width, context).ms);
  };
  for (uint32_t width = 1; width <= sizes.rows; ++width) add(width, last / 2);
  for (const uint32_t width : usual_widths()) {
    if (width > sizes.rows) break;
    add(width, 0);
    add(width, last);
  }
  if (drafter == nullptr) return table;
  for (const uint32_t context : {0u, last}) {
    for (uint32_t backlog = 1; backlog < sizes.most_waiting; backlog *= 2) {
      table.set_draft(backlog, context, draft_ms(*drafter, device, rules, sizes, backlog, context));
    }
    table.set_draft(sizes.most_waiting, context, draft_ms(*drafter, device, rules, sizes, sizes.most_waiting, context));
  }
  return table;
}

}  // namespace canopy::predict
