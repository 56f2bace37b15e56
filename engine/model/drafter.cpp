#include "engine/model/drafter.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <string>

#include "engine/base/error.h"
#include "engine/base/numbers.h"
#include "engine/compute/kv_slots.h"
#include "engine/model/forward_io.h"

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

/// Where the rows of a head that is not the drafter's own come from.
struct HeadSource {
  const ModelFile* file = nullptr;    // of the target
  WeightType type = WeightType::f32;  // of its head on the device
};

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

/// Throws bad_input where a tensor is missing, has another shape or cannot be decoded, and where the head is rows of
/// the target's and there is no file of it.
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

/// Throws what load_weights() throws.
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

}  // namespace

DraftState::DraftState(Drafter& drafter) : DraftState(drafter, PageTable(drafter.pages_)) {}

DraftState::DraftState(Drafter& drafter, const PageTable& table) : drafter_(drafter), table_(table) {}

DraftState::~DraftState() {
  release_store();
}

void DraftState::hold_store() {
  if (store_ == kNone) store_ = drafter_.acquire_store();
}

void DraftState::release_store() {
  if (store_ != kNone) drafter_.release_store(std::exchange(store_, kNone));
}

void DraftState::truncate(uint32_t positions) {
  injected_ = std::min(injected_, positions);
  waiting_ = std::min(waiting_, positions - injected_);
  table_.cut(injected_);
  if (waiting_ == 0) release_store();
}

void DraftState::pretend(uint32_t injected, uint32_t waiting) {
  const uint32_t context = drafter_.context();
  if (waiting > Drafter::most_waiting() || uint64_t{injected} + waiting > context) {
    throw bad_input(std::to_string(injected) + " injected and " + std::to_string(waiting) +
                    " waiting features were pretended; allowed: at most " + std::to_string(Drafter::most_waiting()) +
                    " waiting, in all " + std::to_string(context) + ".");
  }
  table_.reserve(0, injected);
  waiting > 0 ? hold_store() : release_store();
  injected_ = injected;
  waiting_ = waiting;
}

std::unique_ptr<DraftState> DraftState::fork() const {
  auto copy = std::unique_ptr<DraftState>(new DraftState(drafter_, table_));
  if (waiting_ > 0) {
    copy->hold_store();
    drafter_.copy_waiting(store_, copy->store_, waiting_);
  }
  copy->injected_ = injected_;
  copy->waiting_ = waiting_;
  return copy;
}

namespace {

/// Features that may wait, and rows that are injected at once.
constexpr uint32_t kMostWaiting = Drafter::most_waiting();

uint32_t aux_layer_count(const DrafterConfig& config) {
  return static_cast<uint32_t>(config.aux_layers.size());
}

/// Counts of one block have recordings of their own, larger ones share them in steps of a tile: a prompt's lengths are
/// many.
uint32_t padded_count(const Device& device, uint32_t count, uint32_t block) {
  constexpr uint32_t step = 16;
  const uint32_t padded = padded_width(device.info(), count);
  return std::min(kMostWaiting, count <= block ? padded : std::max(padded, (count + step - 1) / step * step));
}

ModelLimits limits_of(const DrafterConfig& config, const Model& target, CacheType cache_type) {
  ModelLimits limits;
  // A block behind the last position stands beyond the context; it needs positions, though nothing of it is kept.
  limits.context = checked_add(target.limits().context, config.block_size, "context of the drafter");
  limits.spare_pages = target.limits().spare_pages;
  limits.tree_slots = config.block_size;
  limits.max_width = std::max(config.block_size, kMostWaiting);
  limits.head_rows = config.block_size - 1;
  // What was asked for is the target's type: the drafter's heads may be of another size.
  limits.cache_type = keeps_heads(cache_type, config.transformer.head_dim) ? cache_type : CacheType::f16;
  return limits;
}

void require_aux_layers(const DrafterConfig& config, const Model& target) {
  std::vector<uint32_t> aux_layers(target.aux_layers().begin(), target.aux_layers().end());
  if (aux_layers != config.aux_layers) {
    throw bad_input("The target was loaded with " + std::to_string(aux_layers.size()) +
                    " taps that are not the drafter's; it must keep the outputs of the drafter's own tap layers.");
  }
}

uint64_t feature_bytes(const DrafterConfig& config, const Device& device) {
  const uint32_t hidden = config.transformer.hidden;
  const uint32_t width = hidden * aux_layer_count(config);
  const uint64_t rows = uint64_t{kMostWaiting} * (width + hidden + sizeof(Row) / 4 + 2) * sizeof(float);
  return rows + device.activation_bytes(kMostWaiting, width) + device.activation_bytes(kMostWaiting, hidden);
}

/// Where the parts of a draft's input and results lie, in bytes.
struct DraftLayout {
  /// positions: the most that its rows see.
  DraftLayout(uint64_t block, uint64_t candidates, uint32_t positions) {
    Packing input;
    rows = input.add(block * sizeof(Row));
    ancestors = input.add(block * sizeof(uint32_t));
    pages = input.add(pages_for(positions) * sizeof(uint32_t));
    injected = input.add(0);
    Packing results;
    tokens = results.add((block - 1) * candidates * sizeof(uint32_t));
    logits = results.add((block - 1) * candidates * sizeof(float));
    log_sum_exp = results.add((block - 1) * sizeof(float));
    result_bytes = results.end();
  }
  uint64_t rows = 0, ancestors = 0, pages = 0, injected = 0;
  uint64_t tokens = 0, logits = 0, log_sum_exp = 0, result_bytes = 0;
};

}  // namespace

std::unique_ptr<Drafter> Drafter::load(const DrafterFile& file, Model& target, const DrafterOptions& options) {
  const DrafterConfig& config = file.config();
  require_aux_layers(config, target);
  const DrafterPlan plan = plan_drafter(file, target.device(), {options.target_file, target.head().type()});
  return std::unique_ptr<Drafter>(new Drafter(file, plan, target, options));
}

Drafter::Drafter(const DrafterFile& file, const DrafterPlan& plan, Model& target, const DrafterOptions& options)
    : device_(target.device()),
      target_(target),
      config_(file.config()),
      limits_(limits_of(config_, target, options.cache_type)),
      layers_(layer_specs(config_)),
      pages_(limits_.pages()) {
  config_.transformer.vocab = target.config().vocab;  // of the tokens that it reads
  ModelConfig transformer = config_.transformer;
  const auto named = static_cast<uint32_t>(config_.draft_token_ids.size());
  if (named > 0) transformer.vocab = named;  // of those that it writes
  candidates_ = std::min(kMaxTopK, transformer.vocab);
  const MemoryPlan memory = plan_memory(transformer, limits_, plan.device_bytes, device_);
  device_bytes_ = memory.weights + memory.cache + memory.working + feature_bytes(config_, device_);
  ReclaimableMemory nothing_replaced;
  ReclaimableMemory& reclaimable = options.memory != nullptr ? *options.memory : nothing_replaced;
  if (const uint64_t available = reclaimable.available(device_); device_bytes_ > available) {
    throw out_of_memory("The drafter needs " + mebibytes(device_bytes_) + " on the device, but only " +
                        mebibytes(available) +
                        " are available beside the model. Choose a shorter context, or go on "
                        "without a drafter.");
  }
  reclaimable.make_room(device_, device_bytes_);
  store_bytes_ = uint64_t{kMostWaiting} * transformer.hidden * aux_layer_count(config_) * sizeof(float);
  stores_.push_back(allocate_features());
  taken_.push_back(false);
  cache_ = std::make_unique<KvCaches>(device_, transformer, limits_, "drafter K/V");
  buffers_ = allocate_pass_buffers(device_, transformer, limits_);
  mover_ = std::make_unique<KvMover>(device_, *buffers_.moves, *cache_);
  const uint64_t word = sizeof(float);
  const uint32_t width = transformer.hidden * aux_layer_count(config_);
  feature_moves_ = device_.allocate_exchanged(kMostWaiting * 2 * word, HostUse::writes, "feature moves");
  projected_ = device_.allocate(kMostWaiting * transformer.hidden * word, "projected features");
  feature_activations_ = device_.allocate_activations(kMostWaiting, width, "aux hidden states");
  context_activations_ = device_.allocate_activations(kMostWaiting, transformer.hidden, "drafter context");
  make_parts();
  weights_ = load_drafter_weights(file, plan, device_, options.callbacks);
}

Drafter::~Drafter() = default;

std::unique_ptr<Buffer> Drafter::allocate_features() {
  return device_.allocate(store_bytes_, "features");
}

uint32_t Drafter::acquire_store() {
  const auto free = std::find(taken_.begin(), taken_.end(), false);
  const auto store = static_cast<uint32_t>(free - taken_.begin());
  if (free == taken_.end()) {
    require_memory(device_, store_bytes_, "What waits of another text for its drafter");
    stores_.push_back(allocate_features());
    taken_.push_back(false);
  }
  taken_[store] = true;
  return store;
}

void Drafter::copy_waiting(uint32_t from, uint32_t to, uint32_t waiting) {
  std::vector<float> features(size_t{waiting} * config_.transformer.hidden * aux_layer_count(config_));
  device_.read(*stores_[from], 0, std::as_writable_bytes(std::span(features)));
  device_.finish();  // a copy that was started may write features
  device_.write(*stores_[to], 0, as_bytes_of(features));
}

void Drafter::make_parts() {
  const DraftLayout layout(config_.block_size, candidates_, limits_.context);
  const uint64_t block = config_.block_size, depths = block - 1, word = sizeof(uint32_t);
  Buffer& input = *buffers_.input;
  parts_.rows = device_.part(input, layout.rows, block * sizeof(Row), "rows of the block");
  parts_.ancestors = device_.part(input, layout.ancestors, block * word, "slots of the block");
  parts_.pages = device_.part(input, layout.pages, pages_for(limits_.context) * word, "drafter page table");
  injected_rows_ = device_.part(input, layout.injected, kMostWaiting * sizeof(Row), "rows of features");
  results_ = device_.allocate_exchanged(layout.result_bytes, HostUse::reads, "draft results");
  tokens_ = device_.part(*results_, layout.tokens, depths * candidates_ * word, "drafted tokens");
  logits_ = device_.part(*results_, layout.logits, depths * candidates_ * word, "drafted logits");
  log_sum_exp_ = device_.part(*results_, layout.log_sum_exp, depths * word, "drafted sums");
  std::vector<uint32_t> block_rows(depths);
  std::iota(block_rows.begin(), block_rows.end(), 1u);  // row 0 is the root, which predicts nothing
  parts_.head_rows = device_.allocate(depths * word, "drafted rows");
  device_.write(*parts_.head_rows, 0, as_bytes_of(block_rows));
}

bool Drafter::append_features(DraftState& text, std::span<const uint32_t> rows, const std::stop_token& stop) {
  while (!rows.empty()) {
    if (text.waiting_ == kMostWaiting && !inject(text, stop)) return false;
    const auto count = std::min<size_t>(rows.size(), kMostWaiting - text.waiting_);
    if (!copy_features(text, rows.first(count), stop)) return false;
    rows = rows.subspan(count);
  }
  return true;
}

void Drafter::append_features_soon(DraftState& text, std::span<const uint32_t> rows) {
  if (rows.size() > kMostWaiting - text.waiting_) inject(text, {});
  device_.start(prepare_copies(text, rows));
  text.waiting_ += static_cast<uint32_t>(rows.size());
}

bool Drafter::copy_features(DraftState& text, std::span<const uint32_t> rows, const std::stop_token& stop) {
  if (!device_.run(prepare_copies(text, rows), stop)) return false;
  text.waiting_ += static_cast<uint32_t>(rows.size());
  return true;
}

Commands& Drafter::prepare_copies(DraftState& text, std::span<const uint32_t> rows) {
  const auto count = static_cast<uint32_t>(rows.size());
  if (text.known() + count > context()) {
    throw bad_input("Features of position " + std::to_string(text.known() + count - 1) +
                    " were kept; the context has " + std::to_string(context()) + " positions.");
  }
  // Copies of all lengths share a few recordings: the last row is copied again.
  const uint32_t padded = std::bit_ceil(count);
  feature_rows_.clear();
  for (uint32_t i = 0; i < padded; ++i) {
    const uint32_t row = std::min(i, count - 1);
    feature_rows_.insert(feature_rows_.end(), {rows[row], text.waiting_ + row});
  }
  device_.finish();  // a copy that was started reads the moves before these
  text.hold_store();
  device_.write(*feature_moves_, 0, as_bytes_of(feature_rows_));
  return copy_commands(text.store_, padded);
}

Commands& Drafter::copy_commands(uint32_t store, uint32_t count) {
  if (Commands* known = copies_.find({store, count})) return *known;
  Recorder record;
  record(CopyRowsArgs{.count = count,
                      .cols = config_.transformer.hidden * aux_layer_count(config_),
                      .in = target_.aux_hidden_states(),
                      .moves = feature_moves_.get(),
                      .out = stores_[store].get()});
  return copies_.keep({store, count}, device_.compile(record.finish()));
}

bool Drafter::inject(DraftState& text, const std::stop_token& stop) {
  if (text.waiting_ == 0) {
    text.release_store();
    return true;
  }
  const Shape shape{padded_count(device_, text.waiting_, config_.block_size), 0, 0, text.store_};
  Commands* const commands = commands_for(shape, stop);
  if (commands == nullptr) return false;
  reserve(text);
  upload_.clear();
  put_each(upload_, 0, shape.injected, [&](size_t i) { return injected_row(text, static_cast<uint32_t>(i)); });
  device_.write(*injected_rows_, 0, upload_);
  if (!device_.run(*commands, stop)) return false;
  end_injection(text);
  return true;
}

void Drafter::end_injection(DraftState& text) {
  text.injected_ += std::exchange(text.waiting_, 0);
  text.release_store();
}

std::optional<Draft> Drafter::draft(DraftState& text, uint32_t root, uint32_t depths, const std::stop_token& stop) {
  if (depths == 0 || depths > max_depth()) {
    throw bad_input("A draft of " + std::to_string(depths) + " tokens was asked for; allowed: 1 to " +
                    std::to_string(max_depth()) + ".");
  }
  if (stop.stop_requested()) return std::nullopt;  // a short pass is not asked in between
  const uint32_t positions = rounded_positions(text.known() + config_.block_size, limits_.context);
  const uint32_t injected = text.waiting_ > 0 ? padded_count(device_, text.waiting_, config_.block_size) : 0;
  // Where widths share recordings, drafts of all depths do.
  const bool pads = !device_.info().width_buckets.empty();
  const Shape shape{injected, pads ? max_depth() : depths, positions, injected > 0 ? text.store_ : 0};
  Commands* const commands = commands_for(shape, stop);
  if (commands == nullptr) return std::nullopt;
  ++drafts_;
  reserve(text);
  upload(text, root, shape.injected);
  if (!device_.run(*commands, stop)) return std::nullopt;
  end_injection(text);
  return read_results(depths);
}

Draft Drafter::read_results(uint32_t depths) {
  const DraftLayout layout(config_.block_size, candidates_, limits_.context);
  Draft draft;
  draft.device_ms = device_.last_run_ms();
  download_.resize(layout.result_bytes);
  device_.read(*results_, 0, download_);
  const std::span<const std::byte> packed = download_;
  draft.depths = depths;
  draft.candidates = candidates_;
  draft.tokens = array_at<uint32_t>(packed, layout.tokens, size_t{depths} * candidates_);
  for (uint32_t& token : draft.tokens) token = token_at(token);
  draft.logits = array_at<float>(packed, layout.logits, size_t{depths} * candidates_);
  draft.log_sum_exp = array_at<float>(packed, layout.log_sum_exp, depths);
  draft.drafter = this;
  draft.number = drafts_;
  return draft;
}

std::vector<float> Draft::logits_at(uint32_t depth) const {
  if (depth == 0 || depth > depths) {
    throw bad_input("Logits of depth " + std::to_string(depth) + " were asked for; the draft has depths 1 to " +
                    std::to_string(depths) + ".");
  }
  if (drafter->drafts_ != number) {
    throw bad_input("Logits of depth " + std::to_string(depth) +
                    " were asked for after the drafter had begun another draft; they must be read before.");
  }
  const DrafterConfig& config = drafter->config_;
  std::vector<float> row(drafter->drafted_tokens());
  drafter->device_.read(*drafter->buffers_.logits, uint64_t{depth - 1} * row.size() * sizeof(float),
                        std::as_writable_bytes(std::span(row)));
  const float cap = config.final_logit_softcapping;
  for (float& logit : row) {
    logit *= config.output_multiplier;
    if (cap > 0) logit = cap * std::tanh(logit / cap);
  }
  return row;
}

std::vector<float> Drafter::hidden_states() {
  std::vector<float> x(size_t{config_.block_size} * config_.transformer.hidden);
  device_.read(*buffers_.x, 0, std::as_writable_bytes(std::span(x)));
  return x;
}

void Drafter::reserve(DraftState& text) {
  const std::vector<KvMove> moves = text.table_.reserve(text.injected_, text.known());
  try {
    mover_->move(moves);
  } catch (...) {
    text.truncate(text.injected_ / kPagePositions * kPagePositions);  // the page that was to be copied holds nothing
    throw;
  }
}

// Rows beyond those that wait are features too, stale ones, but their keys go to a slot of the block, which is written
// after them.
Row Drafter::injected_row(const DraftState& text, uint32_t i) const {
  const bool real = i < text.waiting_;
  Row row;
  row.position = real ? text.injected_ + i : 0;
  row.slot = real ? slot_of(text.table_.pages(), row.position) : limits_.first_tree_slot();
  return row;
}

void Drafter::upload(const DraftState& text, uint32_t root, uint32_t padded) {
  block_tokens_.assign(config_.block_size, config_.mask_token);
  block_tokens_[0] = root;
  RowBatch& block = block_rows_;
  block.clear();
  block.pages.assign(text.table_.pages().begin(), text.table_.pages().end());
  block.add_block(block_tokens_, limits_.first_tree_slot(), text.known());
  validate_block(block, config_.transformer.vocab, limits_.context, limits_.slots());
  const DraftLayout layout(config_.block_size, candidates_, limits_.context);
  upload_.clear();
  put(upload_, layout.rows, block.rows);
  put(upload_, layout.ancestors, block.ancestors);
  put_each(upload_, layout.pages, pages_for(limits_.context), [&](size_t i) { return page_entry(block.pages, i); });
  if (padded == 0) return device_.write(*buffers_.input, 0, upload_);
  put_each(upload_, layout.injected, padded, [&](size_t i) { return injected_row(text, static_cast<uint32_t>(i)); });
  device_.write(*buffers_.input, 0, upload_);
}

Commands* Drafter::commands_for(const Shape& shape, const std::stop_token& stop) {
  if (Commands* known = recordings_.find(shape)) return known;
  Recorder record;
  if (shape.injected > 0) record_injection(record, shape);
  if (shape.depths > 0) record_block(record, shape);
  std::unique_ptr<Commands> commands = device_.compile(record.finish(), stop);
  return commands == nullptr ? nullptr : &recordings_.keep(shape, std::move(commands));
}

// g = hidden_norm(fc(features)); K = rope(k_norm(Wk g)), V = Wv g in every layer, with no input norm on this side.
void Drafter::record_injection(Recorder& record, const Shape& shape) {
  const uint32_t count = shape.injected;
  const ModelConfig& config = config_.transformer;
  record(NormRowsArgs{.width = count, .in = stores_[shape.store].get(), .norm = {}, .out = feature_activations_.get()});
  record(LinearArgs{.width = count,
                    .weight = weights_.fc.get(),
                    .in = feature_activations_.get(),
                    .out = projected_.get(),
                    .stride = config.hidden,
                    .offset = 0});
  record(NormRowsArgs{
      .width = count, .in = projected_.get(), .norm = {weights_.hidden_norm.get()}, .out = context_activations_.get()});
  for (uint32_t layer = 0; layer < config.layers; ++layer) {
    const LayerWeights& weights = weights_.body.layers[layer];
    std::vector<const Weight*> keys_values;
    for (size_t i = 1; i < weights.qkv.size(); ++i) keys_values.push_back(weights.qkv[i].get());
    record(ProjectHeadsArgs{.weights = keys_values,
                            .in = context_activations_.get(),
                            .in_norm_eps = config.rms_eps,
                            .qkv = buffers_.qkv.get(),
                            .heads = {.width = count,
                                      .qkv = buffers_.qkv.get(),
                                      .rows = injected_rows_.get(),
                                      .rotation = buffers_.rotation.get(),
                                      .k_norm = weights.k_norm.get(),
                                      .norm_eps = config.rms_eps,
                                      .heads = 0,
                                      .shape = cache_->shape(layer),
                                      .interleaved = layers_[layer].rope == RopeLayout::interleaved,
                                      .cache = &cache_->layer(layer)}});
  }
}

void Drafter::record_block(Recorder& record, const Shape& shape) {
  PassShape pass;
  pass.width = config_.block_size;
  pass.max_positions = shape.max_positions;
  pass.head = HeadOutput::logits;
  pass.head_rows = shape.depths;
  record_forward(record, forward_context(), pass);
  record(TopKArgs{.width = shape.depths,
                  .logits = buffers_.logits.get(),
                  .vocab = drafted_tokens(),
                  .k = candidates_,
                  .ids = tokens_.get(),
                  .values = logits_.get(),
                  .log_sum_exp = log_sum_exp_.get(),
                  .multiplier = config_.output_multiplier,
                  .softcap = config_.final_logit_softcapping});
}

ForwardContext Drafter::forward_context() const {
  return {.config = config_.transformer,
          .layers = layers_,
          .weights = weights_.body,
          .embedding = target_.embedding(),
          .head = head(),
          .buffers = buffers_,
          .parts = parts_,
          .cache = *cache_,
          .aux_layers = {},
          .embedding_scale = config_.input_embedding_scale};
}

}  // namespace canopy
