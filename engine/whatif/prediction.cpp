#include "engine/whatif/prediction.h"

#include <algorithm>
#include <deque>
#include <filesystem>

#include "engine/base/error.h"
#include "engine/base/mapped_file.h"
#include "engine/base/numbers.h"
#include "engine/whatif/op_work.h"

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

namespace {

constexpr uint32_t kWidths[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128};

/// Of rows, ancestor lists and results: a few dozen bytes for each row.
constexpr double kBusBytesPerRow = 256;

double host_us(const DeviceProfile& device, const KernelRules& rules, uint32_t width) {
  return rules.submissions * (device.submission_us + device.round_trip_us) +
         width * kBusBytesPerRow / (device.bus_gb_s * 1e3);
}

std::string shapes_of(const Op& op) {
  return std::visit([](const auto& args) { return args.shapes(); }, op);
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
    const Work work = work_of(op, rules, device);
    const WorkTime time = time_of(work, device);
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
  for (const Op& op : ops) us += time_of(work_of(op, rules, device), device).total;
  return us / 1e3;
}

/// Milliseconds of the drafter's pass: features become keys and values, then a block is drafted, in one submission.
double draft_ms(RecordedModel& drafter, const DeviceProfile& device, const KernelRules& rules, const RoundSizes& sizes,
                uint32_t backlog, uint32_t context) {
  double ms = predict_pass(drafter, device, rules, sizes.block, context).ms;
  if (backlog > 0) ms += predict_ops_ms(drafter.record_injection(backlog), device, rules);
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
