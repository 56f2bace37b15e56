#include "engine/model/model.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "engine/base/error.h"
#include "engine/format/architecture.h"
#include "engine/model/rounded_positions.h"

namespace canopy {
namespace {

template <class T>
void write_words(Device& device, Buffer& to, const std::vector<T>& values) {
  device.write(to, 0, as_bytes_of(values));
}

// Stands where a recording has room for more single logits than were asked for.
constexpr uint32_t no_row = 0xFFFFFFFF;

/// Keys of the row that has most.
uint32_t longest(const RowBatch& batch) {
  uint32_t positions = 1;
  for (const Row& row : batch.rows) positions = std::max(positions, row.position + 1);
  return positions;
}

/// What a recording of the head depends on.
PassShape head_shape(const PassOutputs& outputs, uint32_t width) {
  PassShape shape;
  shape.width = width;
  shape.head = outputs.head;
  shape.head_rows = static_cast<uint32_t>(outputs.rows.size());
  shape.all_rows = shape.head_rows == width;
  for (uint32_t i = 0; i < shape.head_rows && shape.all_rows; ++i) shape.all_rows = outputs.rows[i] == i;
  shape.probabilities = outputs.probabilities;
  // Trees of all sizes share a few recordings.
  const auto count = static_cast<uint32_t>(outputs.token_logits.size());
  if (count > 0) shape.token_logits = std::bit_ceil(std::max(kFewestTokenLogits, count));
  return shape;
}

KvCache allocate_cache(Device& device, const ModelConfig& config, const KvShape& shape,
                       const LoadCallbacks& callbacks) {
  KvCache cache;
  for (uint32_t layer = 0; layer < config.layers; ++layer) {
    require_going(callbacks);
    cache.push_back(device.allocate_kv(shape, "K/V " + std::to_string(layer)));
  }
  return cache;
}

void check_options(const ModelConfig& config, const ModelOptions& options) {
  if (options.max_width == 0 || options.max_width > 4096) {
    throw bad_input("The width of a pass is " + std::to_string(options.max_width) + "; allowed: 1 to 4096.");
  }
  if (options.tree_slots > 65536) {
    throw bad_input("The number of tree slots is " + std::to_string(options.tree_slots) + "; allowed: up to 65536.");
  }
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
  require_supported(layer_specs(config));
  ModelLimits limits;
  limits.max_width = options.max_width;
  limits.tree_slots = options.tree_slots != 0 ? options.tree_slots : options.max_width;
  limits.head_rows = head_rows_for(config, options.max_width);
  limits.aux_layers = static_cast<uint32_t>(options.aux_layers.size());
  limits.cache_type = options.cache_type;
  ReclaimableMemory nothing_replaced;
  ReclaimableMemory& memory = options.memory != nullptr ? *options.memory : nothing_replaced;
  const auto planned = [&] {
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
      layers_(layer_specs(config_)) {
  // The cache first: if memory runs out after all, it does so before gigabytes were copied.
  const KvShape shape = kv_shape(config_, limits_);
  caches_.push_back(allocate_cache(device_, config_, shape, options.callbacks));
  taken_.push_back(false);
  buffers_ = allocate_pass_buffers(device_, config_, limits_);
  weights_ = load_weights(file, plan.weights, device_, options.callbacks);
}

Model::~Model() = default;

double Model::pass_flops(uint32_t width, uint32_t head_rows, uint32_t positions) const {
  const double head = static_cast<double>(config_.vocab) * config_.hidden;
  const double layers = static_cast<double>(weight_elements_) - head;
  const double attention = 4.0 * config_.q_width() * positions * config_.layers;
  return width * (2.0 * layers + attention) + head_rows * 2.0 * head;
}

PassResult Model::run(const RowBatch& batch, const PassOutputs& outputs, const std::stop_token& stop, uint32_t cache) {
  check(batch);
  check_cache(cache);
  check_outputs(outputs, batch.width());
  if ((outputs.aux_hidden_states || outputs.keep_aux_hidden_states) && aux_layers_.empty()) {
    throw bad_input("Taps were asked for; the model was loaded without any.");
  }
  PassShape shape = head_shape(outputs, batch.width());
  shape.max_positions = rounded_positions(longest(batch), limits_.context);
  shape.aux_hidden_states = outputs.aux_hidden_states || outputs.keep_aux_hidden_states;
  shape.cache = cache;
  Commands* commands = commands_for(shape, stop);
  if (commands == nullptr) return {};
  last_width_ = 0;  // until the pass is done
  kept_logits_ = 0;
  write_words(device_, *buffers_.rows, batch.rows);
  write_words(device_, *buffers_.ancestors, batch.ancestors);
  write_head_inputs(outputs, shape);
  if (!device_.run(*commands, stop)) return {};
  last_width_ = shape.width;
  if (shape.head == HeadOutput::logits && outputs.keep_logits) kept_logits_ = shape.head_rows;
  return read_outputs(outputs, shape);
}

PassResult Model::compute_logits(const PassOutputs& outputs, const std::stop_token& stop) {
  if (last_width_ == 0) {
    throw bad_input("The head of more rows was asked for; no pass was completed whose rows these could be.");
  }
  check_outputs(outputs, last_width_);
  if (outputs.head == HeadOutput::none || outputs.aux_hidden_states || outputs.keep_aux_hidden_states) {
    throw bad_input("More of a pass was asked for, but not of the head; allowed: argmax or logits, and no taps.");
  }
  PassShape shape = head_shape(outputs, last_width_);
  shape.head_only = true;
  kept_logits_ = 0;
  Commands* commands = commands_for(shape, stop);
  if (commands == nullptr) return {};
  write_head_inputs(outputs, shape);
  if (!device_.run(*commands, stop)) return {};
  return read_outputs(outputs, shape);
}

void Model::check(const RowBatch& batch) const {
  validate(batch, config_.vocab, limits_.context, limits_.slots());
  if (batch.width() > limits_.max_width) {
    throw bad_input("A pass of " + std::to_string(batch.width()) + " rows was asked for; allowed: at most " +
                    std::to_string(limits_.max_width) + ".");
  }
  for (size_t i = 0; i < batch.rows.size(); ++i) {
    if (batch.rows[i].ancestor_count > kMaxTreeDepth + 1) {
      throw bad_input("Row " + std::to_string(i) + " of the pass has " +
                      std::to_string(batch.rows[i].ancestor_count - 1) + " ancestors; allowed: at most " +
                      std::to_string(kMaxTreeDepth) + ".");
    }
  }
}

void Model::check_cache(uint32_t cache) const {
  if (cache < caches_.size()) return;
  throw bad_input("The cache " + std::to_string(cache) + " was asked for; the model has " +
                  std::to_string(caches_.size()) + ".");
}

void Model::check_outputs(const PassOutputs& outputs, uint32_t width) const {
  const uint32_t most = outputs.head == HeadOutput::logits ? limits_.head_rows : limits_.max_width;
  const bool wants_head = outputs.head != HeadOutput::none;
  if (wants_head == outputs.rows.empty() || outputs.rows.size() > most) {
    throw bad_input("The " + std::string(outputs.head == HeadOutput::logits ? "logits" : "head") + " of " +
                    std::to_string(outputs.rows.size()) + " rows were asked for; allowed: 1 to " +
                    std::to_string(most) + ", or none without a head.");
  }
  for (const uint32_t row : outputs.rows) {
    if (row >= width) {
      throw bad_input("The head of row " + std::to_string(row) + " was asked for; the pass has " +
                      std::to_string(width) + " rows.");
    }
  }
  if (!wants_head && outputs.probabilities) {
    throw bad_input("Probabilities were asked for; they come with argmax or logits only.");
  }
  if (outputs.token_logits.size() > limits_.max_token_logits()) {
    throw bad_input(std::to_string(outputs.token_logits.size()) + " single logits were asked for; allowed: at most " +
                    std::to_string(limits_.max_token_logits()) + ".");
  }
  for (const auto& [row, token] : outputs.token_logits) {
    if (row >= outputs.rows.size() || token >= config_.vocab) {
      throw bad_input("The logit of token " + std::to_string(token) + " of wanted row " + std::to_string(row) +
                      " was asked for; there are " + std::to_string(outputs.rows.size()) + " wanted rows and " +
                      std::to_string(config_.vocab) + " tokens.");
    }
  }
}

void Model::write_head_inputs(const PassOutputs& outputs, const PassShape& shape) {
  if (shape.head_rows > 0) write_words(device_, *buffers_.head_rows, outputs.rows);
  if (shape.token_logits == 0) return;
  std::vector<uint32_t> pairs;
  for (const auto& [row, token] : outputs.token_logits) pairs.insert(pairs.end(), {row, token});
  while (pairs.size() < size_t{shape.token_logits} * 2) pairs.insert(pairs.end(), {no_row, 0});
  write_words(device_, *buffers_.token_logit_pairs, pairs);
}

Commands* Model::commands_for(const PassShape& shape, const std::stop_token& stop) {
  if (Commands* known = recordings_.find(shape)) return known;
  Recorder record;
  record_forward(record, context(shape.cache), shape);
  std::unique_ptr<Commands> commands = device_.compile(record.finish(), stop);
  return commands == nullptr ? nullptr : &recordings_.keep(shape, std::move(commands));
}

PassResult Model::read_outputs(const PassOutputs& outputs, const PassShape& shape) {
  PassResult result;
  result.completed = true;
  std::vector<uint32_t> best;  // pairs: token, and the bits of its logit
  std::vector<BufferRead> reads;
  const auto want = [&reads](auto& words, const Buffer& from, uint64_t count) {
    words.resize(count);
    reads.push_back({&from, 0, std::as_writable_bytes(std::span(words))});
  };
  const uint64_t rows = shape.head_rows;
  if (shape.head == HeadOutput::argmax) want(best, *buffers_.best, rows * 2);
  if (shape.head == HeadOutput::logits && !outputs.keep_logits) {
    want(result.logits, *buffers_.logits, rows * config_.vocab);
  }
  if (shape.probabilities) want(result.log_sum_exp, *buffers_.log_sum_exp, rows);
  if (shape.token_logits > 0) want(result.token_logits, *buffers_.token_logits, outputs.token_logits.size());
  if (outputs.aux_hidden_states)
    want(result.aux_hidden_states, *buffers_.aux_hidden_states,
         uint64_t{shape.width} * aux_layers_.size() * config_.hidden);
  if (!reads.empty()) device_.read_all(reads);
  for (size_t i = 0; i < best.size(); i += 2) {
    result.ids.push_back(best[i]);
    result.best.push_back(std::bit_cast<float>(best[i + 1]));
  }
  return result;
}

void Model::read_logits(uint32_t index, std::span<float> to) const {
  if (index >= kept_logits_ || to.size() != config_.vocab) {
    throw bad_input(std::to_string(to.size()) + " logits of wanted row " + std::to_string(index) +
                    " were asked for; the last pass kept " + std::to_string(kept_logits_) + " rows of " +
                    std::to_string(config_.vocab) + ".");
  }
  device_.read(*buffers_.logits, uint64_t{index} * config_.vocab * sizeof(float), std::as_writable_bytes(to));
}

ForwardContext Model::context(uint32_t cache) const {
  return {.config = config_,
          .layers = layers_,
          .weights = weights_,
          .embedding = embedding(),
          .head = head(),
          .buffers = buffers_,
          .cache = caches_[cache],
          .kv = kv_shape(config_, limits_),
          .aux_layers = aux_layers_};
}

void Model::move_kv(std::span<const KvMove> moves, uint32_t cache) {
  check_cache(cache);
  if (moves.empty()) return;
  if (moves.size() > kMaxKvMoves) {
    throw bad_input(std::to_string(moves.size()) + " K/V moves were asked for at once; allowed: at most " +
                    std::to_string(kMaxKvMoves) + ".");
  }
  std::vector<uint32_t> words;
  for (const KvMove& move : moves) {
    if (std::max(move.from, move.to) >= limits_.slots()) {
      throw bad_input("A K/V move goes from slot " + std::to_string(move.from) + " to " + std::to_string(move.to) +
                      "; allowed: slots below " + std::to_string(limits_.slots()) + ".");
    }
    words.insert(words.end(), {move.from, move.to});
  }
  const auto count = static_cast<uint32_t>(moves.size());
  std::unique_ptr<Commands>& commands = moves_[{cache, count}];
  if (!commands) {
    Recorder record;
    for (const auto& layer : caches_[cache]) {
      record(KvMoveArgs{buffers_.moves.get(), count, kv_shape(config_, limits_), layer.get()});
    }
    commands = device_.compile(record.finish());
  }
  write_words(device_, *buffers_.moves, words);
  device_.run(*commands);
}

void Model::copy_kv(uint32_t from, uint32_t to, uint32_t positions) {
  check_cache(from);
  check_cache(to);
  if (positions == 0) return;
  for (uint32_t layer = 0; layer < config_.layers; ++layer) {
    for (const bool values : {false, true}) {
      device_.write_kv(*caches_[to][layer], values, 0, read_kv(layer, values, 0, positions, from));
    }
  }
}

uint32_t Model::acquire_cache() {
  const auto free = std::find(taken_.begin(), taken_.end(), false);
  const auto cache = static_cast<uint32_t>(free - taken_.begin());
  if (free == taken_.end()) {
    caches_.push_back(allocate_cache(device_, config_, kv_shape(config_, limits_), {}));
    taken_.push_back(false);
  }
  taken_[cache] = true;
  return cache;
}

std::vector<float> Model::read_kv(uint32_t layer, bool values, uint32_t first, uint32_t count, uint32_t cache) const {
  check_cache(cache);
  if (layer >= config_.layers || uint64_t{first} + count > limits_.slots()) {
    throw bad_input("K/V of layer " + std::to_string(layer) + ", slots " + std::to_string(first) + " to " +
                    std::to_string(uint64_t{first} + count) + " were asked for; there are " +
                    std::to_string(config_.layers) + " layers of " + std::to_string(limits_.slots()) + " slots.");
  }
  return device_.read_kv(*caches_[cache][layer], values, first, count);
}

}  // namespace canopy
