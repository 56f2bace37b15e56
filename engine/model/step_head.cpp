#include "engine/model/step_head.h"

#include <algorithm>
#include <string>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/numbers.h"
#include "engine/compute/kv_slots.h"
#include "engine/model/forward_io.h"

namespace canopy {
namespace {

/// Rows of text that are injected at once.
constexpr uint32_t kMostRows = FeatureDrafter::most_waiting();

ModelLimits limits_of_head(const ModelConfig& config, const Model& target, CacheType cache_type) {
  ModelLimits limits;
  // Nodes behind the last position stand beyond the context; they need positions, though nothing of them is kept.
  limits.context = checked_add(target.limits().context, StepHead::kDeepest, "context of the head");
  limits.texts = target.limits().texts;
  limits.spare_pages = target.limits().spare_pages;
  limits.tree_slots = BeamHead::kMostNodes - 1;
  limits.head_rows = padded_width(target.device().info(), kMostBeams);
  limits.max_width = std::max(kMostRows, limits.head_rows);
  limits.cache_type = keeps_heads(cache_type, config.head_dim) ? cache_type : CacheType::f16;
  return limits;
}

/// Where the parts of a pass's input lie, in bytes.
struct StepLayout {
  /// positions: the most that its rows see.
  StepLayout(uint64_t width, uint32_t positions) {
    constexpr uint64_t word = sizeof(uint32_t);
    Packing input;
    rows = input.add(width * sizeof(Row));
    moves = input.add(width * 2 * word);
    keeps = input.add(width * 2 * word);
    ancestors = input.add(width * StepHead::kDeepest * word);
    pages = input.add(pages_for(positions) * word);
    injected_rows = input.add(kMostRows * sizeof(Row));
    injected_moves = input.add(kMostRows * 2 * word);
    input_bytes = input.end();
  }
  uint64_t rows = 0, moves = 0, keeps = 0, ancestors = 0, pages = 0, injected_rows = 0, injected_moves = 0;
  uint64_t input_bytes = 0;
};

}  // namespace

StepHead::StepHead(Model& target, const ModelConfig& config, const LayerSpec& layer, uint32_t feature_width,
                   CacheType cache_type)
    : BeamHead(target, config, limits_of_head(config, target, cache_type), feature_width),
      layers_{layer},
      widest_(limits_.head_rows) {}

StepHead::~StepHead() = default;

StepHead::Plan StepHead::plan_of(const Parts& parts, const RequireTensor& require) const {
  Plan plan;
  const AddMatrix add = counting(plan.file_bytes, plan.device_bytes);
  const auto matrix = [&](const char* name, uint64_t rows, uint64_t cols) {
    return add(name, {&require(name, rows, cols)}, WeightLayout::stacked, {});
  };
  plan.fc = matrix("fc", config_.hidden, parts.fc_cols);
  plan.layer = plan_layer(config_, 0, QkvJoin::keys_values, require, add);
  if (parts.embedded_tokens > 0) plan.token_embd.push_back(matrix("token_embd", parts.embedded_tokens, config_.hidden));
  if (parts.drafted_tokens > 0) plan.output.push_back(matrix("output", parts.drafted_tokens, config_.hidden));
  plan.device_bytes += parts.vector_elements * sizeof(float);
  return plan;
}

void StepHead::prepare(const Plan& plan, uint64_t further, ReclaimableMemory* memory) {
  const uint64_t row = uint64_t{config_.hidden} * sizeof(float), all = limits_.max_width;
  const uint64_t widest_row = uint64_t{std::max(feature_width_, config_.hidden)} * sizeof(float);
  const StepLayout layout(widest_, limits_.context);
  // Rows as they come, normed halves, what nodes left, a root's feature and a row of zeros.
  const uint64_t rows = all * (widest_row + 3 * row) + node_bytes(widest_, config_.hidden) + 2 * widest_row;
  allocate(config_, plan.device_bytes,
           rows + all * sizeof(RowMove) + layout.input_bytes +
               device_.activation_bytes(limits_.max_width, 2 * config_.hidden) + further,
           memory);
  gathered_ = device_.allocate(all * widest_row, "states of the head's rows");
  sum_ = allocate_rows(config_.hidden, "normed halves of the head's rows");
  joined_ = allocate_rows(2 * uint64_t{config_.hidden}, "head's rows");
  joined_rows_ = device_.allocate_activations(limits_.max_width, 2 * config_.hidden, "head's rows");
  zero_ = device_.allocate(widest_row, "zeros");
  zero_moves_ = device_.allocate(all * sizeof(RowMove), "rows of zeros");
  allocate_nodes(widest_, config_.hidden);
  root_feature_ = device_.allocate(widest_row, "feature of a root");
  std::vector<RowMove> moves;
  for (uint32_t i = 0; i < limits_.max_width; ++i) moves.push_back({0, i});
  device_.write(*zero_moves_, 0, as_bytes_of(moves));
  make_parts();
}

std::unique_ptr<Buffer> StepHead::allocate_rows(uint64_t cols, const char* name) {
  return device_.allocate(uint64_t{limits_.max_width} * cols * sizeof(float), name);
}

void StepHead::load_weights(const Plan& plan, const RequireTensor& require,
                            const std::function<void()>& check_unchanged, const LoadCallbacks& callbacks,
                            const std::function<void(TensorLoader&)>& load_norms) {
  LoadMonitor monitor(callbacks, plan.file_bytes);
  std::vector<const MatrixPlan*> matrices = {&plan.fc};
  append_in_load_order(plan.layer, matrices);
  for (const MatrixPlan& table : plan.token_embd) matrices.push_back(&table);
  for (const MatrixPlan& table : plan.output) matrices.push_back(&table);
  TensorLoader tensors(device_, matrices, monitor, check_unchanged);
  fc_ = tensors.matrix(plan.fc);
  body_.layers.push_back(load_layer(tensors, require, config_, layers_[0], plan.layer, 0));
  if (const Buffer* bias = body_.layers[0].qkv_bias.get()) {
    std::vector<float> behind_queries(size_t{2} * config_.kv_width());
    device_.read(*bias, uint64_t{config_.q_width()} * sizeof(float), std::as_writable_bytes(std::span(behind_queries)));
    kv_bias_ = device_.allocate(behind_queries.size() * sizeof(float), "bias of the head's keys and values");
    device_.write(*kv_bias_, 0, as_bytes_of(behind_queries));
  }
  load_norms(tensors);
  if (!plan.token_embd.empty()) body_.token_embd = tensors.matrix(plan.token_embd[0]);
  if (!plan.output.empty()) body_.output = tensors.matrix(plan.output[0]);
  monitor.report();
  check_unchanged();  // what is wrong with the file was wrong when it was read
}

void StepHead::make_parts() {
  const StepLayout layout(widest_, limits_.context);
  const uint64_t width = widest_, word = sizeof(uint32_t);
  input_ = device_.allocate_exchanged(layout.input_bytes, HostUse::writes, "head input");
  parts_.rows = device_.part(*input_, layout.rows, width * sizeof(Row), "rows of nodes");
  moves_ = device_.part(*input_, layout.moves, width * sizeof(RowMove), "states of parents");
  keeps_ = device_.part(*input_, layout.keeps, width * sizeof(RowMove), "places of states");
  parts_.ancestors = device_.part(*input_, layout.ancestors, width * kDeepest * word, "slots of paths");
  parts_.pages = device_.part(*input_, layout.pages, pages_for(limits_.context) * word, "head page table");
  injected_rows_ = device_.part(*input_, layout.injected_rows, kMostRows * sizeof(Row), "rows of text");
  injected_moves_ = device_.part(*input_, layout.injected_moves, kMostRows * sizeof(RowMove), "states of text");
}

/// Counts of waiting states whose rows can be made: the token behind each is known.
uint32_t StepHead::injectable(const DraftState& text) const {
  const auto tokens = static_cast<uint32_t>(text.text_ != nullptr ? text.text_->size() : 0);
  return std::min(text.waiting_, tokens > text.injected_ ? tokens - 1 - text.injected_ : 0);
}

/// Small counts have recordings of their own, larger ones share them in steps of a tile: a prompt's lengths are many.
uint32_t StepHead::padded_injection(uint32_t count) const {
  constexpr uint32_t step = 16;
  if (count == 0) return 0;
  const uint32_t padded = padded_width(device_.info(), count);
  return std::min(kMostRows, count <= kMostBeams ? padded : std::max(padded, (count + step - 1) / step * step));
}

bool StepHead::inject(DraftState& text, const std::stop_token& stop) {
  const uint32_t count = injectable(text);
  if (count == 0) return true;
  text.hold_store();
  const Shape shape{.injected = padded_injection(count), .store = text.store_};
  Commands* const commands = commands_for(shape, stop);
  if (commands == nullptr) return false;
  reserve(text);
  upload_.clear();
  put_injection(text, count, shape.injected);
  const StepLayout layout(widest_, limits_.context);
  device_.write(*input_, layout.injected_rows, std::span(upload_).subspan(layout.injected_rows));
  if (!device_.run(*commands, stop)) return false;
  text.end_injection(count);
  return true;
}

/// Rows of text, the first that wait. Those that pad them store nothing.
void StepHead::put_injection(const DraftState& text, uint32_t count, uint32_t padded) {
  const StepLayout layout(widest_, limits_.context);
  put_each(upload_, layout.injected_rows, padded, [&](size_t i) {
    Row row;
    row.slot = kNoSlot;
    if (i >= count) return row;
    row.position = text.injected_ + static_cast<uint32_t>(i);
    row.token = (*text.text_)[row.position + 1];
    row.slot = slot_of(text.table_.pages(), row.position);
    return row;
  });
  put_each(upload_, layout.injected_moves, padded, [&](size_t i) {
    const auto row = static_cast<uint32_t>(i);
    return RowMove{text.store_row(std::min(row, count - 1)), row};
  });
}

/// It waits, or is that of the last draft, behind the same text.
bool StepHead::has_last_state(const DraftState& text) const {
  return text.waiting_ > 0 || (root_of_ == text.number_ && last_position_ + 1 == text.known());
}

bool StepHead::run(const DraftTree& tree, uint32_t first, BlockDraft& draft, const std::stop_token& stop) {
  DraftState& text = *text_;
  const uint32_t count = tree.width() - first;
  Shape shape;
  shape.width = padded_width(device_.info(), count);
  shape.max_positions = rounded_positions(last_position_ + 1 + kDeepest, limits_.context);
  shape.root = first == 0;
  shape.store = DraftState::kNone;  // the root's state is that of the last draft
  uint32_t injected = 0;
  if (first == 0 && text.waiting_ > 0) {
    text.hold_store();
    shape.store = text.store_;
    injected = text.waiting_ - 1;
    shape.injected = padded_injection(injected);
  }
  Commands* const commands = commands_for(shape, stop);
  if (commands == nullptr) return false;
  if (first == 0) reserve(text, std::min(text.injected_, last_position_));
  upload_.clear();
  put_nodes(tree, first, shape);
  if (injected > 0) put_injection(text, injected, shape.injected);
  device_.write(*input_, 0, upload_);
  if (!device_.run(*commands, stop)) {
    root_of_ = 0;
    return false;
  }
  device_ms_ += device_.last_run_ms();
  if (first == 0) {
    root_of_ = text.number_;
    text.end_injection(text.waiting_);
    text.next_ = tree[0].token;
  }
  read_lists(count, draft);
  return true;
}

/// The root goes where the text goes on; nodes to slots of trees. Each sees the text, the root and its own path.
void StepHead::put_nodes(const DraftTree& tree, uint32_t first, const Shape& shape) {
  const StepLayout layout(widest_, limits_.context);
  const std::span<const uint32_t> pages = text_->table_.pages();
  const uint32_t count = tree.width() - first;
  std::vector<Row> rows;
  std::vector<uint32_t> ancestors;
  std::vector<RowMove> moves, keeps;
  for (uint32_t i = 0; i < shape.width; ++i) {
    const uint32_t node = first + std::min(i, count - 1);
    const uint32_t from = first > 0                          ? tree[node].parent
                          : shape.store == DraftState::kNone ? 0
                                                             : text_->store_row(text_->waiting_ - 1);
    moves.push_back({from, i});
    keeps.push_back({std::min(i, count - 1), node});
    Row row;
    row.slot = kNoSlot;
    if (i < count) {
      const uint32_t depth = tree[node].depth;
      row.token = tree[node].token;
      row.position = last_position_ + depth;
      row.slot = depth == 0 ? slot_of(pages, last_position_) : limits_.first_tree_slot() + node - 1;
      row.prefix = depth == 0 ? last_position_ : last_position_ + 1;
      row.first_ancestor = static_cast<uint32_t>(ancestors.size());
      row.ancestor_count = std::max(1u, depth);
      row.in_place = depth == 0 ? 1 : 0;
      ancestors.resize(ancestors.size() + row.ancestor_count, row.slot);
      for (uint32_t above = tree[node].parent, place = depth; place > 1; --place, above = tree[above].parent) {
        ancestors[row.first_ancestor + place - 2] = limits_.first_tree_slot() + above - 1;
      }
    }
    rows.push_back(row);
  }
  put(upload_, layout.rows, rows);
  put(upload_, layout.moves, moves);
  put(upload_, layout.keeps, keeps);
  put(upload_, layout.ancestors, ancestors);
  put_each(upload_, layout.pages, pages_for(shape.max_positions), [&](size_t i) { return page_entry(pages, i); });
}

Commands* StepHead::commands_for(const Shape& shape, const std::stop_token& stop) {
  if (Commands* known = recordings_.find(shape)) return known;
  Recorder record;
  if (shape.injected > 0) record_injection(record, shape);
  if (shape.width > 0) record_nodes(record, shape);
  std::unique_ptr<Commands> commands = device_.compile(record.finish(), stop);
  return commands == nullptr ? nullptr : &recordings_.keep(shape, std::move(commands));
}

void StepHead::record_normed(Recorder& record, uint32_t width, uint32_t cols, const Buffer& in, const Buffer& weight,
                             Activations& scratch, Buffer& x, Buffer* joined, uint32_t stride, uint32_t offset) {
  record(CopyRowsArgs{.count = width, .cols = cols, .in = zero_.get(), .moves = zero_moves_.get(), .out = &x});
  record(NormAddArgs{.width = width,
                     .in = &in,
                     .weight = &weight,
                     .eps = config_.rms_eps,
                     .x = &x,
                     .norm = {&weight},
                     .out = &scratch,
                     .aux = joined,
                     .aux_stride = stride,
                     .aux_offset = offset});
}

const Buffer& StepHead::record_states(Recorder&, uint32_t) {
  return *buffers_.x;
}

/// Keys and values of rows of text, which nothing else is wanted of.
void StepHead::record_injection(Recorder& record, const Shape& shape) {
  const LayerWeights& weights = body_.layers[0];
  record_inputs(record, shape.injected, *injected_rows_, *stores_[shape.store], *injected_moves_, true);
  std::vector<const Weight*> keys_values;
  for (size_t i = 1; i < weights.qkv.size(); ++i) keys_values.push_back(weights.qkv[i].get());
  const ProjectHeadsArgs project{.weights = keys_values,
                                 .in = qkv_input() != nullptr ? qkv_input() : buffers_.normed.get(),
                                 .in_norm_eps = qkv_input() != nullptr ? 0 : config_.residual_eps(),
                                 .qkv = buffers_.qkv.get(),
                                 .heads = {.width = shape.injected,
                                           .qkv = buffers_.qkv.get(),
                                           .rows = injected_rows_.get(),
                                           .rotation = buffers_.rotation.get(),
                                           .k_norm = weights.k_norm.get(),
                                           .norm_eps = config_.rms_eps,
                                           .heads = 0,
                                           .shape = cache_->shape(0),
                                           .interleaved = layers_[0].rope == RopeLayout::interleaved,
                                           .cache = &cache_->layer(0)}};
  if (!kv_bias_) return record(project);
  OpList ops = separate_ops(project);
  const AddBiasArgs bias{shape.injected, project.heads.elements(), kv_bias_.get(), buffers_.qkv.get()};
  ops.insert(ops.end() - 1, bias);  // before the keys are turned and stored
  for (Op& op : ops) record(std::move(op));
}

void StepHead::record_nodes(Recorder& record, const Shape& shape) {
  const bool from_store = shape.root && shape.store != DraftState::kNone;
  const Buffer& states = from_store ? *stores_[shape.store] : shape.root ? *root_feature_ : *states_of_nodes_;
  record_inputs(record, shape.width, *parts_.rows, states, *moves_, shape.root);
  if (from_store) {  // the first move is the root's, to row 0
    record(CopyRowsArgs{
        .count = 1, .cols = feature_width_, .in = &states, .moves = moves_.get(), .out = root_feature_.get()});
  }
  PassShape pass;
  pass.width = shape.width;
  pass.max_positions = shape.max_positions;
  pass.head = HeadOutput::logits;
  pass.head_rows = shape.width;
  pass.all_rows = true;
  const ForwardContext context = forward_context();
  record_layers(record, context, pass);
  record_head(record, context, pass);
  record_lists(record, shape.width, head().rows());
  const Buffer& states_left = record_states(record, shape.width);
  record(CopyRowsArgs{.count = shape.width,
                      .cols = config_.hidden,
                      .in = &states_left,
                      .moves = keeps_.get(),
                      .out = states_of_nodes_.get()});
}

ForwardContext StepHead::forward_context() const {
  return {.config = config_,
          .layers = layers_,
          .weights = body_,
          .embedding = embedding(),
          .head = head(),
          .buffers = buffers_,
          .parts = parts_,
          .cache = *cache_,
          .aux_layers = {},
          .embedding_scale = config_.embedding_scale,
          .qkv_input = qkv_input()};
}

std::vector<float> StepHead::read_kv(const DraftState& text, bool values, uint32_t count) const {
  std::vector<float> all;
  for (uint32_t first = 0; first < count; first += kPagePositions) {
    const uint32_t rows = std::min(kPagePositions, count - first);
    const std::vector<float> page =
        device_.read_kv(cache_->layer(0), values, slot_of(text.table_.pages(), first), rows);
    all.insert(all.end(), page.begin(), page.end());
  }
  return all;
}

}  // namespace canopy
