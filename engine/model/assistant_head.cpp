#include "engine/model/assistant_head.h"

#include <algorithm>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/numbers.h"
#include "engine/compute/kv_slots.h"
#include "engine/model/forward_io.h"
#include "engine/model/mtp_head.h"
#include "engine/model/rotation.h"

namespace canopy {
namespace {

/// Of the target's cache, which the keys and values are in.
ModelLimits limits_of_assistant(const Model& target) {
  ModelLimits limits = target.limits();
  limits.head_rows = padded_width(target.device().info(), kMostBeams);
  limits.max_width = limits.head_rows;
  limits.padded_rows = limits.aux_layers = limits.states = 0;
  limits.rotations = 1;  // all rows of a draft stand at one position
  return limits;
}

std::vector<uint32_t> layers_read(const ModelConfig& target, const ModelConfig& assistant) {
  std::vector<uint32_t> read;
  for (uint32_t n = 0; n < assistant.layers; ++n) read.push_back(layer_read_by(target, assistant, n));
  return read;
}

/// The layers with the K/V heads that they read.
ModelConfig config_of_assistant(const ModelConfig& assistant, const ModelConfig& target) {
  ModelConfig config = assistant;
  config.layer_kv_heads.clear();
  for (const uint32_t n : layers_read(target, assistant)) config.layer_kv_heads.push_back(target.kv_heads_of(n));
  config.kv_heads = std::ranges::max(config.layer_kv_heads);
  return config;
}

/// Where the parts of a pass's input lie, in bytes.
struct AssistantLayout {
  AssistantLayout(uint64_t width, uint32_t positions, const ModelConfig& config) {
    constexpr uint64_t word = sizeof(uint32_t);
    Packing input;
    rows = input.add(width * sizeof(Row));
    seen_rows = input.add(width * sizeof(Row));
    moves = input.add(width * sizeof(RowMove));
    keeps = input.add(width * sizeof(RowMove));
    rotation = input.add(config.head_dim * word);
    local_rotation = input.add(config.has_local_rope() ? local_dim(config) * word : 0);
    ancestors = input.add(word);
    pages = input.add(pages_for(positions) * word);
    input_bytes = input.end();
  }
  static uint64_t local_dim(const ModelConfig& config) {
    return config.local_head_dim != 0 ? config.local_head_dim : config.head_dim;
  }
  uint64_t rows = 0, seen_rows = 0, moves = 0, keeps = 0, rotation = 0, local_rotation = 0, ancestors = 0, pages = 0,
           input_bytes = 0;
};

constexpr uint32_t kNoStore = ~0u;  // of a pass over nodes

}  // namespace

std::unique_ptr<AssistantHead> AssistantHead::load(const AssistantFile& file, Model& target,
                                                   const HeadOptions& options) {
  const std::vector<uint32_t> wanted = mtp_aux_layers(target.config());
  if (!std::ranges::equal(target.aux_layers(), wanted)) {
    throw bad_input("The target was loaded with " + std::to_string(target.aux_layers().size()) +
                    " taps; an assistant needs that of its last layer, " + std::to_string(wanted.front()) + ", alone.");
  }
  return std::unique_ptr<AssistantHead>(new AssistantHead(file, target, options));
}

AssistantHead::AssistantHead(const AssistantFile& file, Model& target, const HeadOptions& options)
    : BeamHead(target, config_of_assistant(file.config().layers, target.config()), limits_of_assistant(target),
               target.config().hidden),
      wide_(target.config().hidden),
      widest_(limits_.head_rows),
      layers_(layer_specs(config_)),
      target_cache_(target.kv_caches(), layers_read(target.config(), config_)),
      plan_(plan_of(file)) {
  for (LayerSpec& layer : layers_) {
    if (layer.window > 0) --layer.window;
  }
  const AssistantLayout layout(widest_, limits_.context, config_);
  const uint64_t rows = uint64_t{widest_} * sizeof(float);
  const uint64_t bytes = rows * (std::max(wide_, config_.hidden) + 6 * uint64_t{wide_}) + node_bytes(widest_, wide_) +
                         widest_ * sizeof(RowMove) + layout.input_bytes + device_.activation_bytes(widest_, 2 * wide_) +
                         device_.activation_bytes(widest_, wide_);
  allocate(config_, plan_.device_bytes, bytes, options.memory);
  allocate_rows();
  load_weights(file, options.callbacks);
}

AssistantHead::~AssistantHead() = default;

AssistantHead::Plan AssistantHead::plan_of(const AssistantFile& file) const {
  const RequireTensor require = [&file](const std::string& name, uint64_t rows, uint64_t cols) -> const TensorView& {
    return file.require(name, rows, cols);
  };
  Plan plan;
  const AddMatrix add = counting(plan.file_bytes, plan.device_bytes);
  const auto matrix = [&](const char* name, uint64_t rows, uint64_t cols) {
    return add(name, {&require(name, rows, cols)}, WeightLayout::stacked, {});
  };
  plan.pre = matrix("pre_projection", config_.hidden, 2 * uint64_t{wide_});
  for (uint32_t n = 0; n < config_.layers; ++n) {
    plan.layers.push_back(plan_layer(config_, n, QkvJoin::all, require, add));
    plan.device_bytes += (4 * uint64_t{config_.hidden} + config_.head_dim_of(n)) * sizeof(float);  // norms
  }
  plan.post = matrix("post_projection", wide_, config_.hidden);
  plan.token_embd = matrix("token_embd", config_.vocab, config_.hidden);
  plan.device_bytes += uint64_t{config_.hidden} * sizeof(float);
  return plan;
}

void AssistantHead::allocate_rows() {
  const AssistantLayout layout(widest_, limits_.context, config_);
  const uint64_t width = widest_, word = sizeof(float);
  const auto rows = [&](uint64_t cols, const char* name) { return device_.allocate(width * cols * word, name); };
  zeros_ = rows(std::max(wide_, config_.hidden), "zeros");
  std::vector<RowMove> from_zeros;
  for (uint32_t i = 0; i < widest_; ++i) from_zeros.push_back({0, i});
  from_zeros_ = device_.allocate(width * sizeof(RowMove), "copies of zeros");
  device_.write(*from_zeros_, 0, as_bytes_of(from_zeros));
  embedded_ = rows(wide_, "embeddings of the assistant's rows");
  states_ = rows(wide_, "states of the assistant's rows");
  state_ = rows(wide_, "states of the assistant's rows");
  joined_ = rows(2 * uint64_t{wide_}, "assistant's rows");
  next_ = rows(wide_, "states behind the assistant's rows");
  joined_rows_ = device_.allocate_activations(widest_, 2 * wide_, "assistant's rows");
  scratch_ = device_.allocate_activations(widest_, wide_, "states of the assistant's rows");
  allocate_nodes(widest_, wide_);
  input_ = device_.allocate_exchanged(layout.input_bytes, HostUse::writes, "assistant input");
  parts_.rows = device_.part(*input_, layout.rows, width * sizeof(Row), "rows of nodes");
  seen_rows_ = device_.part(*input_, layout.seen_rows, width * sizeof(Row), "what nodes see");
  moves_ = device_.part(*input_, layout.moves, width * sizeof(RowMove), "states of parents");
  keeps_ = device_.part(*input_, layout.keeps, width * sizeof(RowMove), "places of states");
  const auto table = [&](uint64_t at, uint64_t dim, const char* name) {
    return device_.part(*input_, at, dim * word, name);
  };
  buffers_.rotation = table(layout.rotation, config_.head_dim, "rotation of the root's position");
  if (config_.has_local_rope()) {
    buffers_.local_rotation =
        table(layout.local_rotation, AssistantLayout::local_dim(config_), "local rotation of the root's position");
  }
  parts_.ancestors = device_.part(*input_, layout.ancestors, word, "slot of the last token");
  parts_.pages = device_.part(*input_, layout.pages, pages_for(limits_.context) * word, "target's page table");
}

void AssistantHead::load_weights(const AssistantFile& file, const LoadCallbacks& callbacks) {
  const RequireTensor require = [&file](const std::string& name, uint64_t rows, uint64_t cols) -> const TensorView& {
    return file.require(name, rows, cols);
  };
  const auto check_unchanged = [&file] { file.check_unchanged(); };
  LoadMonitor monitor(callbacks, plan_.file_bytes);
  std::vector<const MatrixPlan*> matrices = {&plan_.pre};
  for (const LayerPlan& layer : plan_.layers) append_in_load_order(layer, matrices);
  matrices.push_back(&plan_.post);
  matrices.push_back(&plan_.token_embd);
  {
    TensorLoader tensors(device_, matrices, monitor, check_unchanged);
    pre_ = tensors.matrix(plan_.pre);
    for (uint32_t n = 0; n < config_.layers; ++n) {
      body_.layers.push_back(load_layer(tensors, require, config_, layers_[n], plan_.layers[n], n));
    }
    body_.output_norm = tensors.norm(require("output_norm", 1, config_.hidden));
    post_ = tensors.matrix(plan_.post);
    body_.token_embd = tensors.matrix(plan_.token_embd);
    monitor.report();
    check_unchanged();  // what is wrong with the file was wrong when it was read
  }
  plan_ = Plan();
}

std::string AssistantHead::identity() const {
  return "an assistant that reads the model's keys, " + std::to_string(config_.parameters) + " parameters, " +
         config_.quantization;
}

bool AssistantHead::inject(DraftState& text, const std::stop_token&) {
  if (text.waiting_ > 1) text.end_injection(text.waiting_ - 1);
  return true;
}

bool AssistantHead::has_last_state(const DraftState& text) const {
  return text.waiting_ > 0;
}

bool AssistantHead::run(const DraftTree& tree, uint32_t first, BlockDraft& draft, const std::stop_token& stop) {
  DraftState& text = *text_;
  const uint32_t count = tree.width() - first;
  Shape shape;
  shape.width = padded_width(device_.info(), count);
  shape.max_positions = rounded_positions(last_position_ + 1, limits_.context);
  shape.store = kNoStore;
  if (first == 0) {
    rotation_ = rotation_at(config_, limits_.context, last_position_ + 1);
    if (config_.has_local_rope()) local_rotation_ = local_rotation_at(config_, last_position_ + 1);
    inject(text);
    text.hold_store();
    shape.store = text.store_;
  }
  Commands* const commands = commands_for(shape, stop);
  if (commands == nullptr) return false;
  upload_.clear();
  put_nodes(tree, first, shape);
  device_.write(*input_, 0, upload_);
  if (!device_.run(*commands, stop)) return false;
  device_ms_ += device_.last_run_ms();
  if (first == 0) text.read_ = text.waiting_;
  read_lists(count, draft);
  return true;
}

/// Queries stand at the root's position, whose rotations are the only ones that tables have. What they see ends with
/// the text: as if each were the row of its last token.
void AssistantHead::put_nodes(const DraftTree& tree, uint32_t first, const Shape& shape) {
  const AssistantLayout layout(widest_, limits_.context, config_);
  const std::span<const uint32_t> pages = text_->target_pages_->pages();
  const uint32_t count = tree.width() - first;
  std::vector<Row> rows, seen;
  std::vector<RowMove> moves, keeps;
  for (uint32_t i = 0; i < shape.width; ++i) {
    const uint32_t node = first + std::min(i, count - 1);
    moves.push_back({first == 0 ? text_->store_row(text_->waiting_ - 1) : tree[node].parent, i});
    keeps.push_back({std::min(i, count - 1), node});
    Row row, sight;
    row.slot = sight.slot = kNoSlot;
    if (i < count) {
      row.token = sight.token = tree[node].token;
      sight.position = sight.prefix = last_position_;
      sight.slot = slot_of(pages, last_position_);
      sight.ancestor_count = sight.in_place = 1;
    }
    rows.push_back(row);
    seen.push_back(sight);
  }
  put(upload_, layout.rows, rows);
  put(upload_, layout.seen_rows, seen);
  put(upload_, layout.moves, moves);
  put(upload_, layout.keeps, keeps);
  put(upload_, layout.rotation, rotation_);
  put(upload_, layout.local_rotation, local_rotation_);
  put(upload_, layout.ancestors, std::vector<uint32_t>{slot_of(pages, last_position_)});
  put_each(upload_, layout.pages, pages_for(shape.max_positions), [&](size_t i) { return page_entry(pages, i); });
}

Commands* AssistantHead::commands_for(const Shape& shape, const std::stop_token& stop) {
  if (Commands* known = recordings_.find(shape)) return known;
  Recorder record;
  record_nodes(record, shape);
  std::unique_ptr<Commands> commands = device_.compile(record.finish(), stop);
  return commands == nullptr ? nullptr : &recordings_.keep(shape, std::move(commands));
}

void AssistantHead::record_half(Recorder& record, uint32_t width, Buffer& x, uint32_t offset) {
  record(NormAddArgs{.width = width,
                     .in = zeros_.get(),
                     .weight = &target_.output_norm(),
                     .eps = target_.config().rms_eps,
                     .x = &x,
                     .norm = {&target_.output_norm()},
                     .out = scratch_.get(),
                     .aux = joined_.get(),
                     .aux_stride = 2 * wide_,
                     .aux_offset = offset});
}

void AssistantHead::record_nodes(Recorder& record, const Shape& shape) {
  const uint32_t width = shape.width, hidden = config_.hidden;
  const ModelConfig& target = target_.config();
  const Buffer& norm = target_.output_norm();
  record(EmbedArgs{.width = width,
                   .table = &target_.embedding(),
                   .rows = parts_.rows.get(),
                   .x = embedded_.get(),
                   .norm = {&norm},
                   .out = scratch_.get(),
                   .scale = target.embedding_scale});
  record_half(record, width, *embedded_, 0);
  if (shape.store == kNoStore) {
    record(CopyRowsArgs{
        .count = width, .cols = wide_, .in = states_of_nodes_.get(), .moves = moves_.get(), .out = state_.get()});
    record_half(record, width, *state_, wide_);
  } else {
    record(CopyRowsArgs{
        .count = width, .cols = wide_, .in = stores_[shape.store].get(), .moves = moves_.get(), .out = states_.get()});
    record(CopyRowsArgs{
        .count = width, .cols = wide_, .in = zeros_.get(), .moves = from_zeros_.get(), .out = state_.get()});
    record(NormAddArgs{.width = width,
                       .in = states_.get(),
                       .weight = &norm,
                       .eps = target.rms_eps,
                       .x = state_.get(),
                       .norm = {&norm},
                       .out = scratch_.get(),
                       .aux = joined_.get(),
                       .aux_stride = 2 * wide_,
                       .aux_offset = wide_});
  }
  record(NormRowsArgs{.width = width, .in = joined_.get(), .norm = {}, .out = joined_rows_.get()});
  record(LinearArgs{.width = width,
                    .weight = pre_.get(),
                    .in = joined_rows_.get(),
                    .out = buffers_.x.get(),
                    .stride = hidden,
                    .offset = 0});
  // The residual stream is kept times a power of two, and nothing is added here.
  const Buffer& first_norm = *body_.layers[0].attn_norm;
  record(NormAddArgs{.width = width,
                     .in = zeros_.get(),
                     .weight = &first_norm,
                     .eps = config_.rms_eps,
                     .x = buffers_.x.get(),
                     .norm = {&first_norm},
                     .out = buffers_.normed.get(),
                     .x_scale = config_.residual_scale});
  PassShape pass;
  pass.width = pass.head_rows = width;
  pass.max_positions = shape.max_positions;
  pass.head = HeadOutput::logits;
  pass.all_rows = true;
  const ForwardContext context{.config = config_,
                               .layers = layers_,
                               .weights = body_,
                               .embedding = *body_.token_embd,
                               .head = *body_.token_embd,
                               .buffers = buffers_,
                               .parts = parts_,
                               .cache = target_cache_,
                               .aux_layers = {},
                               .seen_rows = seen_rows_.get()};
  record_layers(record, context, pass);
  record_head(record, context, pass);
  record_lists(record, width, config_.vocab);
  record(LinearArgs{.width = width,
                    .weight = post_.get(),
                    .in = buffers_.normed.get(),
                    .norm_eps = config_.residual_eps(),
                    .out = next_.get(),
                    .stride = wide_,
                    .offset = 0});
  record(CopyRowsArgs{
      .count = width, .cols = wide_, .in = next_.get(), .moves = keeps_.get(), .out = states_of_nodes_.get()});
}

}  // namespace canopy
