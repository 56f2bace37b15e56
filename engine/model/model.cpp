#include "engine/model/model.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/base/error.h"
#include "engine/compute/kv_slots.h"
#include "engine/format/architecture.h"
#include "engine/model/pass_buffers.h"
#include "engine/model/recurrent_memory.h"

namespace canopy {
namespace {

void check_options(const ModelConfig& config, const ModelOptions& options) {
  if (options.max_width == 0 || options.max_width > 4096) {
    throw bad_input("The width of a pass is " + std::to_string(options.max_width) + "; allowed: 1 to 4096.");
  }
  if (options.tree_slots > 65536) {
    throw bad_input("The number of tree slots is " + std::to_string(options.tree_slots) + "; allowed: up to 65536.");
  }
  if (options.texts == 0 || options.texts > 1024) {
    throw bad_input("The cache was to have pages for " + std::to_string(options.texts) + " texts; allowed: 1 to 1024.");
  }
  check_keeps_heads(options.cache_type, config.head_dim);
  if (config.local_head_dim != 0) check_keeps_heads(options.cache_type, config.local_head_dim);
  for (size_t i = 0; i < options.aux_layers.size(); ++i) {
    if (options.aux_layers[i] >= config.layers || (i > 0 && options.aux_layers[i] <= options.aux_layers[i - 1])) {
      throw bad_input("Tap " + std::to_string(i) + " names layer " + std::to_string(options.aux_layers[i]) +
                      "; allowed: ascending layers below " + std::to_string(config.layers) + ".");
    }
  }
}

}  // namespace

std::unique_ptr<Model> Model::load(Device& device, const ModelFile& file, const ModelOptions& options) {
  const ModelConfig& config = file.config();
  check_options(config, options);
  ModelLimits limits;
  limits.max_width = options.max_width;
  limits.padded_rows = padded_width(device.info(), options.max_width);
  limits.tree_slots = options.tree_slots != 0 ? options.tree_slots : options.max_width;
  limits.texts = options.texts;
  limits.most_texts = options.most_texts;
  limits.spare_pages = options.spare_pages;
  limits.head_rows = head_rows_for(config, options.max_width);
  limits.aux_layers = static_cast<uint32_t>(options.aux_layers.size());
  limits.cache_type = options.cache_type;
  ReclaimableMemory nothing_replaced;
  ReclaimableMemory& memory = options.memory != nullptr ? *options.memory : nothing_replaced;
  const auto planned = [&] {
    device.finish();  // what others gave back is free only when the device is done with it
    limits.texts = options.texts;
    return plan_load(file, device, memory.available(device), limits, options.context, options.quantize,
                     options.would_fit);
  };
  LoadPlan plan = planned();
  if (memory.make_room(device, plan.memory.total())) plan = planned();  // with what is really there now
  if (options.planned) options.planned(plan);
  return std::unique_ptr<Model>(new Model(device, file, plan, limits, options));
}

Model::Model(Device& device, const ModelFile& file, const LoadPlan& plan, const ModelLimits& limits,
             const ModelOptions& options)
    : device_(device),
      config_(file.config()),
      limits_(limits),
      memory_(plan.memory),
      aux_layers_(options.aux_layers),
      warnings_(plan.weights.warnings),
      quantization_(plan.weights.quantized.sentence()),
      quantized_(plan.quantized),
      weight_elements_(plan.weights.weight_elements),
      pass_bytes_(plan.weights.pass_bytes),
      expert_bytes_(plan.weights.expert_bytes),
      layers_(layer_specs(config_)),
      pages_(limits_.pages()),
      states_(limits_.states) {
  // The cache first: if memory runs out after all, it does so before gigabytes were copied.
  require_going(options.callbacks);
  cache_ = std::make_unique<KvCaches>(device_, config_, limits_, "K/V cache");
  if (limits_.states > 0) recurrent_ = std::make_unique<RecurrentMemory>(device_, config_, limits_);
  buffers_ = allocate_pass_buffers(device_, config_, limits_);
  mover_ = std::make_unique<KvMover>(device_, *buffers_.moves, *cache_);
  weights_ = load_weights(file, plan.weights, device_, options.callbacks);
}

Model::~Model() = default;

double Model::pass_flops(uint32_t width, uint32_t head_rows, uint32_t positions) const {
  const double head = static_cast<double>(config_.vocab) * config_.hidden;
  const double layers = static_cast<double>(weight_elements_) - head;
  double attention = 0;
  for (uint32_t n = 0; n < config_.layers; ++n) {
    if (config_.is_attention(n)) attention += 4.0 * config_.q_width_of(n) * positions;
  }
  const double of_layer =
      (config_.delta_net.scans ? 5.0 : 7.0) * config_.delta_net.values() * config_.delta_net.key_dim +
      2.0 * config_.conv_taps * config_.hidden;
  const double recurrence = of_layer * config_.recurrent_layers();
  return width * (2.0 * layers + attention + recurrence) + head_rows * 2.0 * head;
}

ForwardOutput Model::forward(const ForwardInput& input, const std::stop_token& stop) {
  validate(input, config_, limits_);
  const PassShape shape = shape_of(input, config_, limits_, device_.info());
  if (shape.recurrent) steps_ = delta_walk(input.batch, input.states);
  Recording* const recording = recording_of(shape, stop);
  if (recording == nullptr) return {};
  ++pass_;
  logits_left_ = 0;
  upload(input, shape);
  if (!device_.run(*recording->commands, stop)) {
    forget_touched_experts(device_, config_, buffers_);  // some layers have marked theirs
    return {};
  }
  if (shape.head == HeadOutput::logits) logits_left_ = static_cast<uint32_t>(input.head_rows.size());
  ForwardOutput output;
  output.model_ = this;
  output.pass_ = pass_;
  output.first_slot_ = input.batch.rows.front().slot;
  output.aux_hidden_states_ = input.aux_hidden_states;
  output.states_ = input.states;
  output.device_ms_ = device_.last_run_ms();
  output.positions_.reserve(input.batch.rows.size());
  for (const Row& row : input.batch.rows) output.positions_.push_back(row.position);
  output.head_rows_ = input.head_rows;
  output.parents_.reserve(input.token_logits.size());
  for (const TokenLogit& logit : input.token_logits) output.parents_.push_back(logit.index);
  const uint64_t bytes = PassLayout(shape).result_bytes;
  if (bytes == 0) return output;
  if (input.read_with_logits && logits_left_ > 0) {
    output.waiting_ = shape;
    return output;
  }
  download_.resize(bytes);
  device_.read(*buffers_.results, 0, download_);
  unpack_results(shape, download_, output);
  return output;
}

void Model::upload(const ForwardInput& input, const PassShape& shape) {
  const PassLayout layout(shape);
  upload_.clear();
  if (!shape.head_only) {
    put_each(upload_, layout.rows, shape.width, [&](size_t i) { return padded_row(input.batch, i); });
  }
  put_each(upload_, layout.head_rows, std::max<size_t>(shape.head_rows, input.head_rows.size()),
           [&](size_t i) { return padded_head_row(input, shape, i); });
  put_each(upload_, layout.token_logit_pairs, shape.token_logits, [&](size_t i) {
    return i < input.token_logits.size() ? input.token_logits[i] : TokenLogit{TokenLogit::no_row, 0};
  });
  if (shape.head == HeadOutput::sampled) put_sampling(input, shape);
  if (!shape.head_only) {
    put_each(upload_, layout.pages, pages_for(shape.max_positions),
             [&](size_t i) { return page_entry(input.batch.pages, i); });
    if (shape.recurrent) {
      steps_.resize(shape.width);  // those that fill the pass up do nothing
      put(upload_, layout.steps, steps_);
    }
    put(upload_, layout.ancestors, input.batch.ancestors);
  }
  device_.write(*buffers_.input, 0, upload_);
}

void Model::put_sampling(const ForwardInput& input, const PassShape& shape) {
  const PassLayout layout(shape);
  SamplingWords words = input.sampling.words;
  words.adjustments = static_cast<uint32_t>(input.sampling.adjustments.size());
  std::vector<SampledRow> rows;
  for (size_t i = 0; i < input.head_rows.size(); ++i) {
    rows.push_back({input.batch.rows[input.head_rows[i]].token, input.parents.empty() ? kNoToken : input.parents[i]});
  }
  put(upload_, layout.sampling, std::vector<SamplingWords>{words});
  rows.resize(shape.head_rows, {kNoToken, kNoToken});  // those that pad the pass: nothing is drawn
  put(upload_, layout.sampled_rows, rows);
  if (input.sampling.adjusts) put(upload_, layout.adjustments, input.sampling.adjustments);
}

void Model::unpack_results(const PassShape& shape, std::span<const std::byte> packed, ForwardOutput& output) const {
  const PassLayout layout(shape);
  const size_t top = top_tokens(shape);
  if (shape.likeliest) {
    output.likeliest_ = array_at<uint32_t>(packed, layout.likeliest, output.head_rows_.size() * top);
    if (shape.head == HeadOutput::argmax) {
      output.likeliest_logits_ = array_at<float>(packed, layout.likeliest_logits, output.head_rows_.size() * top);
    }
  }
  if (shape.head == HeadOutput::argmax && top > 0) {
    output.choices_.resize(output.head_rows_.size());
    output.best_logits_.resize(output.head_rows_.size());
    for (size_t i = 0; i < output.choices_.size(); ++i) {
      output.choices_[i] = element_at<uint32_t>(packed, layout.likeliest, i * top);
      output.best_logits_[i] = element_at<float>(packed, layout.likeliest_logits, i * top);
      if (std::isnan(output.best_logits_[i])) output.choices_[i] = kNoToken;  // there are no numbers
    }
  } else if (shape.head == HeadOutput::argmax) {
    const size_t rows = output.head_rows_.size();
    output.choices_.resize(rows);
    output.best_logits_.resize(rows);
    for (size_t i = 0; i < rows; ++i) {
      output.choices_[i] = element_at<uint32_t>(packed, layout.best, 2 * i);
      output.best_logits_[i] = element_at<float>(packed, layout.best, 2 * i + 1);
    }
  }
  if (shape.head == HeadOutput::sampled) {
    output.choices_ = array_at<uint32_t>(packed, layout.drawn, output.head_rows_.size());
  }
  if (shape.probabilities) output.log_sum_exp_ = array_at<float>(packed, layout.log_sum_exp, output.head_rows_.size());
  output.token_logits_ = array_at<float>(packed, layout.token_logits, output.parents_.size());
  output.distinct_experts_ = array_at<uint32_t>(packed, layout.distinct_experts, shape.expert_layers);
}

void Model::compute_logits(std::span<const uint32_t> rows, uint32_t width) {
  ForwardInput input;
  input.head = HeadOutput::logits;
  input.head_rows.assign(rows.begin(), rows.end());
  PassShape shape;
  shape.width = width;
  shape.head = HeadOutput::logits;
  shape.head_rows = std::min(padded_width(device_.info(), static_cast<uint32_t>(rows.size())), limits_.head_rows);
  shape.head_only = true;
  Recording& recording = *recording_of(shape, {});
  logits_left_ = 0;
  upload(input, shape);
  device_.run(*recording.commands);
}

void Model::read_logits(std::span<const uint32_t> indices, std::span<float> to, ForwardOutput& output) const {
  const uint64_t row = uint64_t{config_.vocab} * sizeof(float);
  std::vector<BufferRead> reads;  // a run of neighbouring rows in one
  for (size_t first = 0; first < indices.size();) {
    size_t end = first + 1;
    while (end < indices.size() && indices[end] == indices[end - 1] + 1) ++end;
    const auto part = to.subspan(first * config_.vocab, (end - first) * config_.vocab);
    reads.push_back({buffers_.logits.get(), indices[first] * row, std::as_writable_bytes(part)});
    first = end;
  }
  if (reads.empty()) return;
  const std::optional<PassShape> waiting = std::exchange(output.waiting_, std::nullopt);
  std::vector<std::byte> packed(waiting ? PassLayout(*waiting).result_bytes : 0);
  if (waiting) reads.push_back({buffers_.results.get(), 0, packed});
  device_.read_all(reads);
  if (waiting) unpack_results(*waiting, packed, output);
}

Model::Recording* Model::recording_of(const PassShape& shape, const std::stop_token& stop) {
  if (Recording* known = recordings_.find(shape)) return known;
  auto recording = std::make_unique<Recording>();
  recording->parts = make_pass_parts(device_, buffers_, shape);
  Recorder record;
  record_forward(record, context(recording->parts), shape);
  recording->commands = device_.compile(record.finish(), stop);
  if (recording->commands == nullptr) return nullptr;
  return &recordings_.keep(shape, std::move(recording));
}

ForwardContext Model::context(const PassParts& parts) const {
  return {.config = config_,
          .layers = layers_,
          .weights = weights_,
          .embedding = embedding(),
          .head = head(),
          .buffers = buffers_,
          .parts = parts,
          .cache = *cache_,
          .aux_layers = aux_layers_,
          .embedding_scale = config_.embedding_scale * config_.residual_scale,
          .recurrent = recurrent_.get()};
}

void Model::forget_recordings() {
  recordings_.clear();
  if (recurrent_) recurrent_->forget_recordings();
}

void Model::apply_rows(std::span<const uint32_t> rows, const StateUse& use) {
  if (!recurrent_) throw bad_input("Rows were to be applied to states; the model has no recurrent layers.");
  for (const uint32_t row : rows) {
    if (row < limits_.rows()) continue;
    throw bad_input("Row " + std::to_string(row) + " was to be applied to states; a pass has at most " +
                    std::to_string(limits_.rows()) + " rows.");
  }
  recurrent_->apply(weights_, rows, use);
}

std::vector<float> Model::read_state(uint32_t layer, uint32_t place) const {
  if (!config_.is_recurrent(layer) || place >= limits_.states) {
    throw bad_input("State " + std::to_string(place) + " of layer " + std::to_string(layer) +
                    " was asked for; allowed: recurrent layers, states below " + std::to_string(limits_.states) + ".");
  }
  return recurrent_->read_state(layer, place);
}

void Model::move_kv(std::span<const KvMove> moves) {
  if (moves.size() > kMaxKvMoves) {
    throw bad_input(std::to_string(moves.size()) + " K/V moves were asked for at once; allowed: at most " +
                    std::to_string(kMaxKvMoves) + ".");
  }
  for (const KvMove& move : moves) {
    if (std::max(move.from, move.to) >= limits_.slots()) {
      throw bad_input("A K/V move goes from slot " + std::to_string(move.from) + " to " + std::to_string(move.to) +
                      "; allowed: slots below " + std::to_string(limits_.slots()) + ".");
    }
  }
  mover_->move(moves);
}

std::vector<float> Model::read_kv(uint32_t layer, bool values, uint32_t first, uint32_t count) const {
  if (layer >= config_.layers || !config_.is_attention(layer) || uint64_t{first} + count > limits_.slots()) {
    throw bad_input("K/V of layer " + std::to_string(layer) + ", slots " + std::to_string(first) + " to " +
                    std::to_string(uint64_t{first} + count) + " were asked for; there are " +
                    std::to_string(config_.layers) + " layers, those of attention with " +
                    std::to_string(limits_.slots()) + " slots.");
  }
  return device_.read_kv(cache_->layer(layer), values, first, count);
}

}  // namespace canopy
