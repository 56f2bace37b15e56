#include "engine/model/weights.h"

#include <cmath>
#include <deque>
#include <map>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/format/dequantize.h"
#include "engine/model/rotation.h"

namespace canopy {
namespace {

constexpr std::chrono::milliseconds kReportInterval{30};

[[noreturn]] void throw_cancelled() {
  throw cancelled("Loading was cancelled.");
}

}  // namespace

void require_going(const LoadCallbacks& callbacks) {
  if (callbacks.stop.stop_requested()) throw_cancelled();
}

void LoadMonitor::advance(uint64_t bytes) {
  done_ += bytes;
  // A thread that finds another one asking goes on: that one's answer reaches it with the next rows.
  if (const std::unique_lock lock(mutex_, std::try_to_lock); lock) {
    if (callbacks_.stop.stop_requested()) cancelled_ = true;
    const auto now = std::chrono::steady_clock::now();
    if (!cancelled_ && callbacks_.progress && now - reported_ >= kReportInterval) {
      reported_ = now;
      callbacks_.progress(done_, total_);
    }
  }
  if (cancelled_) throw_cancelled();
}

void LoadMonitor::report() {
  const std::lock_guard lock(mutex_);
  if (callbacks_.progress) callbacks_.progress(done_, total_);
}

namespace {

constexpr uint64_t kPart = 2ull << 20;

void append_part(std::span<const std::byte> bytes, uint64_t begin, std::vector<std::span<const std::byte>>& parts) {
  if (begin < bytes.size()) parts.push_back(bytes.subspan(begin, std::min<uint64_t>(kPart, bytes.size() - begin)));
}

}  // namespace

std::vector<std::span<const std::byte>> in_reading_order(std::span<const MatrixPlan* const> matrices) {
  std::vector<std::span<const std::byte>> parts;
  for (const MatrixPlan* matrix : matrices) {
    if (!matrix->rows.empty()) continue;                                     // rows from here and there
    const size_t together = matrix->layout == WeightLayout::paired ? 2 : 1;  // tensors whose rows alternate
    for (size_t first = 0; first < matrix->parts.size(); first += together) {
      const auto alternating = std::span(matrix->parts).subspan(first, together);
      uint64_t longest = 0;
      for (const TensorView* tensor : alternating) longest = std::max<uint64_t>(longest, tensor->bytes.size());
      for (uint64_t begin = 0; begin < longest; begin += kPart) {
        for (const TensorView* tensor : alternating) append_part(tensor->bytes, begin, parts);
      }
    }
  }
  return parts;
}

ReadAhead::ReadAhead(std::vector<std::span<const std::byte>> parts, Ask ask)
    : parts_(std::move(parts)), ask_(std::move(ask)), thread_([this](const std::stop_token& stop) { run(stop); }) {}

void ReadAhead::advance(uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  const uint64_t before = std::exchange(read_, read_ + bytes);
  if (before / kPart != read_ / kPart) read_on_.notify_one();
}

void ReadAhead::run(const std::stop_token& stop) {
  uint64_t asked = 0;
  for (const std::span<const std::byte> part : parts_) {
    {
      std::unique_lock lock(mutex_);
      if (!read_on_.wait(lock, stop, [&] { return asked < read_ + kWindow; })) return;
      if (asked + part.size() <= read_) {  // it was read already
        asked += part.size();
        continue;
      }
    }
    ask_(part);
    asked += part.size();
  }
}

namespace {

std::vector<float> decoded(const TensorView& tensor) {
  std::vector<float> values(tensor.elements());
  std::vector<std::byte> scratch;
  dequantize(tensor.type, rows_of(tensor, 0, tensor.rows(), scratch), values);
  return values;
}

/// Hands out rows of a matrix where they lie in the file, or converted.
class MatrixReader {
 public:
  MatrixReader(const MatrixPlan& plan, LoadMonitor& monitor, ReadAhead& read_ahead)
      : plan_(plan), monitor_(monitor), read_ahead_(read_ahead) {
    for (const TensorView* part : plan.parts) pages_.emplace_back(part->bytes);
  }
  MatrixReader(const MatrixReader&) = delete;
  MatrixReader& operator=(const MatrixReader&) = delete;

  std::vector<WeightPart> parts() {
    std::vector<WeightPart> parts = plan_.device_parts();
    for (size_t i = 0; i < parts.size(); ++i) {
      parts[i].read = [this, i](uint32_t first, uint32_t count, std::vector<std::byte>& scratch) {
        return read(i, first, count, scratch);
      };
    }
    return parts;
  }

 private:
  struct Rows {
    size_t part = 0;
    std::span<const std::byte> bytes;
  };

  std::span<const std::byte> read(size_t part, uint32_t first, uint32_t count, std::vector<std::byte>& scratch) {
    const TensorView& tensor = *plan_.parts[part];
    if (!plan_.rows.empty()) return gather(tensor, std::span(plan_.rows).subspan(first, count), scratch);
    if (tensor.packed) return unpack(tensor, first, count, scratch);
    const uint64_t row = tensor.bytes.size() / tensor.rows();
    const std::span<const std::byte> rows = tensor.bytes.subspan(row * first, row * count);
    monitor_.advance(rows.size());
    read_ahead_.advance(rows.size());
    require_finite(tensor, first, rows);
    if (plan_.converts(tensor)) {
      convert_rows(tensor, first, count, plan_.type, scratch);
      pages_[part].used(rows);
      return scratch;
    }
    // A caller that passes the same scratch again no longer needs the earlier result, which may be of another part.
    const Rows last = std::exchange(last_of(scratch), {part, rows});
    if (!last.bytes.empty()) pages_[last.part].used(last.bytes);
    return rows;
  }

  /// Rows that the file has in another form. Codes of neighbouring rows often share words and pages, which are
  /// therefore given back with the whole tensor.
  std::span<const std::byte> unpack(const TensorView& tensor, uint64_t first, uint64_t count,
                                    std::vector<std::byte>& scratch) {
    const uint64_t bytes = tensor.bytes.size(), all = tensor.rows();
    const uint64_t share = bytes * (first + count) / all - bytes * first / all;
    monitor_.advance(share);
    read_ahead_.advance(share);
    std::vector<std::byte> own;
    const bool converts = plan_.converts(tensor);
    const std::span<const std::byte> rows = rows_of(tensor, first, count, converts ? own : scratch);
    require_finite(tensor, first, rows);
    if (converts) convert_rows(tensor, static_cast<uint32_t>(first), rows, plan_.type, scratch);
    return scratch;
  }

  /// Rows are whole blocks in every type, so these are the bits that the whole tensor's rows would have.
  std::span<const std::byte> gather(const TensorView& tensor, std::span<const uint32_t> rows,
                                    std::vector<std::byte>& scratch) {
    const uint64_t row = row_bytes(tensor);
    std::vector<std::byte> gathered(row * rows.size()), made;
    for (size_t i = 0; i < rows.size(); ++i) {
      std::ranges::copy(rows_of(tensor, rows[i], 1, made), gathered.begin() + static_cast<std::ptrdiff_t>(row * i));
    }
    TensorView chosen = tensor;
    chosen.shape[0] = rows.size();
    monitor_.advance(tensor.bytes.size() / tensor.rows() * rows.size());
    require_finite(chosen, 0, gathered);
    if (plan_.converts(tensor)) {
      convert_rows(chosen, 0, gathered, plan_.type, scratch);
    } else {
      scratch = std::move(gathered);
    }
    return scratch;
  }

  Rows& last_of(const std::vector<std::byte>& scratch) {
    const std::lock_guard lock(mutex_);
    return last_[&scratch];
  }

  const MatrixPlan& plan_;
  LoadMonitor& monitor_;
  ReadAhead& read_ahead_;
  std::deque<PageRelease> pages_;  // of each part
  std::mutex mutex_;
  std::map<const void*, Rows> last_;  // by scratch; each entry is one thread's
};

/// values[order[i]] at i; all as they are where the order is empty.
std::vector<float> in_order(std::vector<float> values, std::span<const uint32_t> order) {
  if (order.empty()) return values;
  std::vector<float> result(values.size());
  for (size_t i = 0; i < order.size(); ++i) result.at(i) = values.at(order[i]);
  return result;
}

}  // namespace

TensorLoader::TensorLoader(Device& device, std::span<const MatrixPlan* const> matrices, LoadMonitor& monitor,
                           std::function<void()> check_unchanged)
    : device_(device),
      monitor_(monitor),
      read_ahead_(in_reading_order(matrices)),
      check_unchanged_(std::move(check_unchanged)) {
  std::vector<WeightRequest> requests;
  for (const MatrixPlan* plan : matrices) requests.push_back({plan->device_parts(), plan->layout});
  device_.expect_weights(requests);
}

TensorLoader::~TensorLoader() {
  device_.expect_weights({});
}

std::unique_ptr<Weight> TensorLoader::matrix(const MatrixPlan& plan) {
  before_reading();
  MatrixReader reader(plan, monitor_, read_ahead_);
  return device_.make_weight(reader.parts(), plan.layout, plan.name);
}

std::unique_ptr<Buffer> TensorLoader::norm(const TensorView& tensor, float offset, std::span<const uint32_t> order,
                                           float scale) {
  const TensorView* only = &tensor;
  std::vector<float> values = in_order(values_of({&only, 1}, "norm"), order);
  for (float& value : values) value = (value + offset) * scale;
  return vector(values, tensor.name);
}

std::unique_ptr<Buffer> TensorLoader::rates(const TensorView& tensor, bool logarithms) {
  const TensorView* only = &tensor;
  std::vector<float> values = values_of({&only, 1}, "rate");
  for (float& value : values) {
    if (logarithms) value = static_cast<float>(-std::exp(static_cast<double>(value)));
    if (value <= 0 && std::isfinite(value)) continue;
    throw bad_input("The rates " + quoted_name(tensor.shown_name()) + " hold " + std::to_string(value) +
                    "; finite numbers up to 0 are allowed, as states would grow otherwise.");
  }
  return vector(values, tensor.name);
}

std::unique_ptr<Buffer> TensorLoader::router(std::span<const TensorView* const> parts) {
  return vector(values_of(parts, "router"), parts.front()->name);
}

std::unique_ptr<Buffer> TensorLoader::bias(std::span<const TensorView* const> parts, std::span<const uint32_t> order) {
  return vector(in_order(values_of(parts, "bias"), order), parts.front()->name);
}

std::unique_ptr<Buffer> TensorLoader::bias(const TensorView& tensor) {
  const TensorView* only = &tensor;
  return bias({&only, 1});
}

std::unique_ptr<Buffer> TensorLoader::paired_bias(const TensorView& gate, const TensorView& up) {
  const TensorView* parts[] = {&gate, &up};
  const std::vector<float> values = values_of(parts, "bias");
  const size_t half = values.size() / 2;
  std::vector<float> paired(values.size());
  for (size_t i = 0; i < values.size(); ++i) paired[i] = values[i % 2 * half + i / 2];
  return vector(paired, gate.name);
}

std::unique_ptr<Buffer> TensorLoader::sinks(const TensorView& tensor) {
  const TensorView* only = &tensor;
  return vector(values_of({&only, 1}, "vector of sinks"), tensor.name);
}

std::unique_ptr<Buffer> TensorLoader::ones(uint32_t count, const std::string& name, float scale) {
  return vector(std::vector<float>(count, scale), name);
}

float TensorLoader::scale(const TensorView& tensor) {
  const TensorView* only = &tensor;
  const float value = values_of({&only, 1}, "scale").front();
  if (value != 0) return value;
  throw bad_input("The scale " + quoted_name(tensor.shown_name()) +
                  " is 0, which would leave nothing of the text: the file is damaged.");
}

std::vector<float> TensorLoader::values_of(std::span<const TensorView* const> parts, const char* kind) {
  before_reading();
  std::vector<float> all;
  for (const TensorView* part : parts) {
    const std::vector<float> values = decoded(*part);
    if (!std::ranges::all_of(values, [](float value) { return std::isfinite(value); })) {
      throw bad_input("The " + std::string(kind) + " " + quoted_name(part->shown_name()) +
                      " holds a value that is not finite: the file is damaged.");
    }
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

std::unique_ptr<Buffer> TensorLoader::vector(std::span<const float> values, const std::string& name) {
  auto buffer = device_.allocate(values.size_bytes(), name);
  device_.write(*buffer, 0, std::as_bytes(values));
  return buffer;
}

void TensorLoader::before_reading() {
  monitor_.advance(0);
  check_unchanged_();
}

namespace {

/// Elements of what a scan has of each channel, `each` of a channel, in the order of its queries, keys and values:
/// files have values first and queries last.
std::vector<uint32_t> scan_order(const DeltaNetConfig& net, uint32_t each) {
  std::vector<uint32_t> order;
  const auto take = [&](uint32_t first, uint32_t count) {
    for (uint32_t i = first * each; i < (first + count) * each; ++i) order.push_back(i);
  };
  take(net.values() + net.keys(), net.keys());
  take(net.values(), net.keys());
  take(0, net.values());
  return order;
}

void load_scan(TensorLoader& tensors, const RequireTensor& require, const DeltaNetConfig& net, uint32_t n,
               LayerWeights& layer) {
  const auto tensor = [&](const char* name, uint64_t rows, uint64_t cols) -> const TensorView& {
    return require("blk." + std::to_string(n) + "." + name, rows, cols);
  };
  layer.taps = tensors.norm(tensor("ssm_conv1d", net.channels(), net.taps), 0, scan_order(net, net.taps));
  if (net.has_conv_bias) {
    const TensorView* bias = &tensor("ssm_conv1d.bias", 1, net.channels());
    layer.conv_bias = tensors.bias({&bias, 1}, scan_order(net, 1));
  }
  layer.decay_bias = tensors.bias(tensor("ssm_dt.bias", 1, net.value_heads));
  layer.state_norm = tensors.norm(tensor("ssm_norm", 1, net.values()));
  layer.decay_rate = tensors.rates(tensor("ssm_a", 1, net.value_heads), net.has_log_rates);
  layer.skip = tensors.norm(tensor("ssm_d", 1, net.value_heads));
}

void load_recurrence(TensorLoader& tensors, const RequireTensor& require, const ModelConfig& config, uint32_t n,
                     LayerWeights& layer) {
  const DeltaNetConfig& net = config.delta_net;
  if (net.scans) return load_scan(tensors, require, net, n, layer);
  const auto tensor = [&](const char* name, uint64_t rows, uint64_t cols) -> const TensorView& {
    return require("blk." + std::to_string(n) + "." + name, rows, cols);
  };
  if (config.conv_taps != 0) {
    layer.taps = tensors.norm(tensor("shortconv.conv", config.hidden, config.conv_taps));
    return;
  }
  layer.taps = tensors.norm(tensor("ssm_conv1d", net.channels(), net.taps));
  layer.decay_bias = tensors.norm(tensor("ssm_dt.bias", 1, net.value_heads));
  layer.state_norm = tensors.norm(tensor("ssm_norm", 1, net.value_dim));
  layer.decay_rate = tensors.rates(tensor("ssm_a", 1, net.value_heads), net.has_log_rates);
}

std::unique_ptr<LatentWeights> load_latent(TensorLoader& tensors, const RequireTensor& require,
                                           const ModelConfig& config, const LatentPlan& plan, uint32_t n) {
  const auto norm = [&](const char* name, uint32_t count) {
    return tensors.norm(require("blk." + std::to_string(n) + "." + name, 1, count));
  };
  auto latent = std::make_unique<LatentWeights>();
  if (!plan.query_latent.empty()) {
    latent->query_latent = tensors.matrix(plan.query_latent[0]);
    latent->query_norm = norm("attn_q_a_norm", config.latent.query_rank);
  }
  latent->query_keys = tensors.matrix(plan.query_keys);
  latent->query_turned = tensors.matrix(plan.query_turned);
  latent->latent = tensors.matrix(plan.latent);
  latent->turned = tensors.matrix(plan.turned);
  latent->latent_norm = norm("attn_kv_a_norm", config.latent.rank);
  latent->keys = tensors.matrix(plan.keys);
  latent->values = tensors.matrix(plan.values);
  return latent;
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
    for (const uint32_t i : order) all.push_back(h * config.head_dim_of(n) + i);
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
  if (!plan.latent.empty()) layer.latent = load_latent(tensors, require, config, plan.latent[0], n);
  if (config.is_recurrent(n)) load_recurrence(tensors, require, config, n, layer);
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
      return tensors.norm(require("blk." + std::to_string(n) + "." + name, 1, config.head_dim_of(n)), offset, order);
    };
    layer.q_norm = head_norm("attn_q_norm");
    if (spec.own_kv) layer.k_norm = head_norm("attn_k_norm");
  }
  if (spec.v_norm && spec.own_kv) layer.v_norm = tensors.ones(config.head_dim_of(n), "norm of values");
  if (spec.layer_scale) {
    layer.scale = tensors.scale(require("blk." + std::to_string(n) + ".layer_output_scale", 1, 1));
  }
  if (!plan.gate.empty()) layer.gate = tensors.matrix(plan.gate[0]);
  if (plan.attn_output.is_there()) layer.attn_output = tensors.matrix(plan.attn_output);
  if (spec.output_bias) {
    layer.output_bias = tensors.bias(require("blk." + std::to_string(n) + ".attn_output.bias", 1, config.hidden));
  }
  if (spec.sinks)
    layer.sinks = tensors.sinks(require("blk." + std::to_string(n) + ".attn_sinks", 1, config.heads_of(n)));
  if (spec.mixer != Mixer::none && spec.feed_forward != FeedForward::none) {
    layer.ffn_norm = norm("ffn_norm", config.hidden);
  }
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
  if (spec.choice_bias) {
    layer.choice_bias = tensors.bias(require("blk." + std::to_string(n) + ".exp_probs_b.bias", 1, config.experts));
  }
  if (plan.gate_up.is_there()) layer.gate_up = tensors.matrix(plan.gate_up);
  if (plan.ffn_down.is_there()) layer.ffn_down = tensors.matrix(plan.ffn_down);
  if (!plan.shared_gate_up.empty()) layer.shared_gate_up = tensors.matrix(plan.shared_gate_up[0]);
  if (!plan.shared_down.empty()) layer.shared_down = tensors.matrix(plan.shared_down[0]);
  if (spec.feed_forward == FeedForward::both) {
    const auto scaled = [&](const char* name, uint64_t count, float scale) {
      return tensors.norm(require("blk." + std::to_string(n) + "." + name, 1, count), 0, {}, scale);
    };
    layer.router_norm = scaled("ffn_gate_inp.scale", config.hidden, 1 / std::sqrt(static_cast<float>(config.hidden)));
    layer.expert_scales = scaled("ffn_down_exps.scale", config.experts, 1);
    layer.expert_norm = norm("pre_ffw_norm_2", config.hidden);
    layer.dense_post_norm = norm("post_ffw_norm_1", config.hidden);
    layer.expert_post_norm = norm("post_ffw_norm_2", config.hidden);
  }
  if (!plan.input.empty()) {
    layer.input_gate = tensors.matrix(plan.input[0]);
    layer.input_proj = tensors.matrix(plan.input[1]);
    layer.input_norm = tensors.norm(require("blk." + std::to_string(n) + ".post_norm", 1, config.hidden), offset, {},
                                    config.residual_scale);
  }
  return layer;
}

void append_in_load_order(const LayerPlan& plan, std::vector<const MatrixPlan*>& matrices) {
  for (const MatrixPlan& part : plan.qkv) matrices.push_back(&part);
  for (const LatentPlan& latent : plan.latent) {
    for (const MatrixPlan& matrix : latent.query_latent) matrices.push_back(&matrix);
    for (const MatrixPlan* matrix :
         {&latent.query_keys, &latent.query_turned, &latent.latent, &latent.turned, &latent.keys, &latent.values}) {
      matrices.push_back(matrix);
    }
  }
  for (const MatrixPlan& gate : plan.gate) matrices.push_back(&gate);
  for (const MatrixPlan* matrix : {&plan.attn_output, &plan.gate_up, &plan.ffn_down}) {
    if (matrix->is_there()) matrices.push_back(matrix);
  }
  for (const MatrixPlan& matrix : plan.shared_gate_up) matrices.push_back(&matrix);
  for (const MatrixPlan& matrix : plan.shared_down) matrices.push_back(&matrix);
  for (const MatrixPlan& matrix : plan.input) matrices.push_back(&matrix);
}

std::vector<const MatrixPlan*> in_load_order(const WeightPlan& plan) {
  std::vector<const MatrixPlan*> matrices = {&plan.token_embd};
  for (const LayerPlan& layer : plan.layers) append_in_load_order(layer, matrices);
  for (const MatrixPlan& matrix : plan.layer_inputs) matrices.push_back(&matrix);
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
  weights.output_norm = tensors.norm(file.require("output_norm", 1, config.hidden),
                                     config.has_trained_form ? 1.0f : 0.0f, {}, 1 / config.logit_divisor);
  if (config.layer_inputs != 0 || config.has_experts_beside) {
    weights.ones = tensors.ones(std::max(config.layers * config.layer_inputs, config.hidden), "ones");
  }
  if (!plan.layer_inputs.empty()) {
    weights.layer_embd = tensors.matrix(plan.layer_inputs[0]);
    weights.layer_proj = tensors.matrix(plan.layer_inputs[1]);
    weights.layer_norm = tensors.norm(file.require("per_layer_proj_norm", 1, config.layer_inputs), 0, {},
                                      static_cast<float>(std::sqrt(0.5)));
    weights.embedding_norm =
        tensors.ones(config.hidden, "norm of embeddings", 1 / (config.embedding_scale * config.residual_scale));
  }
  if (!plan.output.empty()) weights.output = tensors.matrix(plan.output[0]);
  monitor.report();
  file.check_unchanged();  // what is wrong with the file was wrong when it was read
  return weights;
}

}  // namespace canopy
