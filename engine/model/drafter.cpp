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

/// Of w2 the rows of the drafted tokens. Both count in the plan.
MarkovPlan plan_markov(const DrafterFile& file, const AddMatrix& add) {
  const DrafterConfig& config = file.config();
  const uint32_t rank = config.markov.rank;
  const bool some = !config.draft_token_ids.empty() && !config.own_head;
  const uint64_t rows = config.own_head ? config.draft_token_ids.size() : config.vocab;
  return {add("markov_w1", {&file.require("markov_w1", config.vocab, rank)}, WeightLayout::stacked, {}),
          add("markov_w2", {&file.require("markov_w2", rows, rank)}, WeightLayout::stacked,
              some ? config.draft_token_ids : std::vector<uint32_t>())};
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
  if (file.config().markov.rank > 0) plan.markov.push_back(plan_markov(file, add));
  const DrafterConvConfig& conv = file.config().conv;
  for (uint32_t n = 0; conv.taps > 0 && n < config.layers; ++n) {
    for (const char* const part : {".attn_conv_proj", ".ffn_conv_proj"}) {
      const std::string name = "blk." + std::to_string(n) + part;
      plan.conv.push_back(
          add(name, {&require(name, conv.kernel_rows(config.hidden), config.hidden)}, WeightLayout::stacked));
    }
    plan.device_bytes += 2 * 2 * uint64_t{conv.taps} * config.hidden * sizeof(float);
  }
  if (const uint32_t rank = file.config().selector.rank; rank > 0) {
    plan.selector_hidden.push_back(
        add("selector_hidden", {&require("selector_hidden", rank, config.hidden)}, WeightLayout::stacked));
  }
  const uint64_t norms = uint64_t{config.layers} * (2 * config.hidden + 2 * config.head_dim) + 2 * config.hidden;
  plan.device_bytes += norms * sizeof(float);
  return plan;
}

/// Candidates of a list behind a path.
constexpr uint32_t kMarkovListed = 32;
uint32_t listed_of(const DrafterConfig& config) {
  return std::min(kMarkovListed, config.drafted_tokens());
}
/// Rows of a pass of a Markov head.
uint32_t most_paths(const Device& device) {
  return padded_width(device.info(), kMostBeams);
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
  for (const MarkovPlan& markov : plan.markov) matrices.insert(matrices.end(), {&markov.w1, &markov.w2});
  for (const MatrixPlan& conv : plan.conv) matrices.push_back(&conv);
  for (const MatrixPlan& hidden : plan.selector_hidden) matrices.push_back(&hidden);
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
  if (!plan.markov.empty()) {
    weights.markov = std::make_unique<MarkovHead>(file, plan.markov[0], device, tensors, most_paths(device),
                                                  listed_of(file.config()));
  }
  for (size_t i = 0; i < plan.conv.size(); ++i) {
    LayerWeights& layer = weights.body.layers[i / 2];
    std::unique_ptr<ConvWeights>& conv = i % 2 == 0 ? layer.attn_conv : layer.ffn_conv;
    const std::string base = "blk." + std::to_string(i / 2) + (i % 2 == 0 ? ".attn_conv_base" : ".ffn_conv_base");
    conv = std::make_unique<ConvWeights>();
    conv->project = tensors.matrix(plan.conv[i]);
    conv->base = tensors.norm(require(base, 2 * uint64_t{file.config().conv.taps}, config.hidden));
  }
  if (!plan.selector_hidden.empty()) {
    weights.selector = std::make_unique<CandidateSelector>(file, plan.selector_hidden[0], device, tensors);
  }
  monitor.report();
  file.check_unchanged();  // what is wrong with the file was wrong when it was read
  return weights;
}

}  // namespace

namespace {

/// Features that may wait, and rows that are injected at once.
constexpr uint32_t kMostWaiting = FeatureDrafter::most_waiting();

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
  limits.texts = target.limits().texts;
  limits.spare_pages = target.limits().spare_pages;
  limits.tree_slots = config.block_size;
  limits.max_width = std::max(config.block_size, kMostWaiting);
  limits.head_rows = config.depths();
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

/// Of what features go through on their way into the cache.
uint64_t injection_bytes(const DrafterConfig& config, const Device& device) {
  const uint32_t hidden = config.transformer.hidden, width = static_cast<uint32_t>(config.feature_width());
  const uint64_t rows = uint64_t{kMostWaiting} * (hidden * sizeof(float) + sizeof(Row));
  return rows + device.activation_bytes(kMostWaiting, width) + device.activation_bytes(kMostWaiting, hidden);
}

uint64_t conv_bytes(const DrafterConfig& config, const Device& device) {
  if (config.conv.taps == 0) return 0;
  const uint64_t block = config.block_size, hidden = config.transformer.hidden;
  const uint64_t floats = hidden + block * (3 * hidden + config.conv.kernel_rows(hidden));
  return floats * sizeof(float) + block * 2 * sizeof(uint32_t) +
         2 * device.activation_bytes(config.block_size, config.transformer.hidden);
}

std::unique_ptr<ConvBuffers> conv_buffers(const DrafterConfig& config, Device& device) {
  if (config.conv.taps == 0) return nullptr;
  const uint32_t block = config.block_size, hidden = config.transformer.hidden;
  const uint64_t rows = uint64_t{block} * hidden * sizeof(float);
  auto conv = std::make_unique<ConvBuffers>();
  conv->taps = config.conv.taps;
  conv->group = config.conv.group;
  conv->zero = device.allocate(hidden * sizeof(float), "zeros");
  conv->zero_moves = device.allocate(block * 2 * sizeof(uint32_t), "rows of zeros");
  std::vector<uint32_t> moves;
  for (uint32_t i = 0; i < block; ++i) moves.insert(moves.end(), {0, i});
  device.write(*conv->zero, 0, as_bytes_of(std::vector<float>(hidden)));
  device.write(*conv->zero_moves, 0, as_bytes_of(moves));
  conv->normed = device.allocate(rows, "normed rows of a convolution");
  conv->kernels = device.allocate(block * config.conv.kernel_rows(hidden) * sizeof(float), "kernels of rows");
  conv->mixed = device.allocate(rows, "mixed rows");
  conv->branch = device.allocate(rows, "rows to be mixed");
  conv->rows = device.allocate_activations(block, hidden, "mixed rows");
  conv->spare = device.allocate_activations(block, hidden, "normed rows of a convolution");
  return conv;
}

/// Where the parts of a draft's input and results lie, in bytes.
struct DraftLayout {
  /// positions: the most that its rows see.
  DraftLayout(const DrafterConfig& config, uint64_t candidates, uint32_t positions) {
    Packing input;
    rows = input.add(config.block_size * sizeof(Row));
    ancestors = input.add(config.block_size * sizeof(uint32_t));
    pages = input.add(pages_for(positions) * sizeof(uint32_t));
    injected = input.add(0);
    Packing results;
    tokens = results.add(config.depths() * candidates * sizeof(uint32_t));
    logits = results.add(config.depths() * candidates * sizeof(float));
    log_sum_exp = results.add(config.depths() * sizeof(float));
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
    : FeatureDrafter(target, limits_of(file.config(), target, options.cache_type),
                     static_cast<uint32_t>(file.config().feature_width())),
      config_(file.config()),
      layers_(layer_specs(config_)) {
  config_.transformer.vocab = target.config().vocab;  // of the tokens that it reads
  ModelConfig transformer = config_.transformer;
  const auto named = static_cast<uint32_t>(config_.draft_token_ids.size());
  if (named > 0) transformer.vocab = named;  // of those that it writes
  candidates_ = config_.selector.rank > 0 ? config_.selector.top_k : std::min(kMaxTopK, transformer.vocab);
  uint64_t further = injection_bytes(config_, device_) + conv_bytes(config_, device_);
  if (config_.selector.rank > 0) further += CandidateSelector::device_bytes(config_);
  if (!plan.markov.empty()) {
    further += MarkovHead::device_bytes(file.config(), device_, most_paths(device_), listed_of(file.config()));
  }
  allocate(transformer, plan.device_bytes, further, options.memory);
  const uint64_t word = sizeof(float);
  projected_ = device_.allocate(kMostWaiting * transformer.hidden * word, "projected features");
  feature_activations_ = device_.allocate_activations(kMostWaiting, feature_width_, "aux hidden states");
  context_activations_ = device_.allocate_activations(kMostWaiting, transformer.hidden, "drafter context");
  conv_ = conv_buffers(config_, device_);
  make_parts();
  weights_ = load_drafter_weights(file, plan, device_, options.callbacks);
}

Drafter::~Drafter() = default;

void Drafter::make_parts() {
  const DraftLayout layout(config_, candidates_, limits_.context);
  const uint64_t block = config_.block_size, depths = config_.depths(), word = sizeof(uint32_t);
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
  std::iota(block_rows.begin(), block_rows.end(), config_.first_slot());
  parts_.head_rows = device_.allocate(depths * word, "drafted rows");
  device_.write(*parts_.head_rows, 0, as_bytes_of(block_rows));
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
  text.end_injection(text.waiting_);
  return true;
}

std::string Drafter::identity() const {
  const std::string kind(config_.kind());
  return (kind == "DFlash" ? "" : kind + ", ") + std::to_string(device_bytes()) + " bytes, block " +
         std::to_string(max_depth() + 1) + ", " + std::to_string(drafted_tokens()) + " tokens";
}

std::optional<Draft> Drafter::draft(DraftState& text, uint32_t root, const DraftWish& wish,
                                    const std::stop_token& stop) {
  const uint32_t depths = wish.depths;
  if (depths == 0 || depths > max_depth()) {
    throw bad_input("A draft of " + std::to_string(depths) + " tokens was asked for; allowed: 1 to " +
                    std::to_string(max_depth()) + ".");
  }
  if (stop.stop_requested()) return std::nullopt;  // a short pass is not asked in between
  if (has_paths()) {
    text_ = &text;
    by_confidence_ = wish.by_confidence;
    device_ms_ = 0;
    places_.clear();
    confidence_.clear();
    Draft draft;
    draft.candidates = weights_.markov ? weights_.markov->candidates() : candidates_;
    if (!draft_paths(*this, root, wish, tree_, draft, stop)) return std::nullopt;
    draft.device_ms = device_ms_;
    draft.drafter = this;
    draft.number = drafts_;
    return draft;
  }
  // Where widths share recordings, drafts of all depths do.
  const bool pads = !device_.info().width_buckets.empty();
  if (!run_pass(text, root, {.depths = pads ? max_depth() : depths}, stop)) return std::nullopt;
  return read_results(depths);
}

/// Injects what waits and drafts the block behind the root; `shape` says what of it is wanted.
bool Drafter::run_pass(DraftState& text, uint32_t root, const Shape& wanted, const std::stop_token& stop) {
  Shape shape = wanted;
  shape.max_positions = rounded_positions(text.known() + config_.block_size, limits_.context);
  shape.injected = text.waiting_ > 0 ? padded_count(device_, text.waiting_, config_.block_size) : 0;
  shape.store = shape.injected > 0 ? text.store_ : 0;
  Commands* const commands = commands_for(shape, stop);
  if (commands == nullptr) return false;
  ++drafts_;
  reserve(text);
  upload(text, root, shape.injected);
  if (!device_.run(*commands, stop)) return false;
  text.end_injection(text.waiting_);
  return true;
}

/// What is likeliest behind nodes, of the block's place of their depth; what the draft has of a place and the token
/// before it stays.
bool Drafter::run(const DraftTree& tree, uint32_t first, BlockDraft& draft, const std::stop_token& stop) {
  std::vector<BlockPlace> wanted;
  for (uint32_t node = first; node < tree.width(); ++node) {
    const BlockPlace place{tree[node].depth, tree[node].token};
    if (std::ranges::find(places_, place) == places_.end() && std::ranges::find(wanted, place) == wanted.end()) {
      wanted.push_back(place);
    }
  }
  if (weights_.markov) {
    if (!wanted.empty() && !run_markov(tree[0].token, first == 0, wanted, stop)) return false;
  } else if (first == 0) {
    if (!run_pass(*text_, tree[0].token, {.depths = max_depth()}, stop)) return false;
    device_ms_ = device_.last_run_ms();
    block_ = read_results(max_depth());
    weights_.selector->read_block();
  }
  add_lists(tree, first, wanted, draft);
  return !stop.stop_requested();
}

/// The pass over rows of a Markov head; the first of a draft comes behind the block's.
bool Drafter::run_markov(uint32_t root, bool is_first, std::span<const BlockPlace> places,
                         const std::stop_token& stop) {
  const uint32_t rows = padded_width(device_.info(), static_cast<uint32_t>(places.size()));
  weights_.markov->write(places, rows);
  if (is_first) {
    if (!run_pass(*text_, root, {.depths = max_depth(), .paths = rows}, stop)) return false;
  } else {
    Commands* const commands = commands_for({.paths = rows}, stop);
    if (commands == nullptr || !device_.run(*commands, stop)) return false;
  }
  device_ms_ += device_.last_run_ms();
  return true;
}

PlaceLists Drafter::lists_of(std::span<const BlockPlace> places) {
  if (places.empty()) return {};
  if (weights_.selector) return weights_.selector->lists(places, block_);
  PlaceLists lists = weights_.markov->read(places);
  for (uint32_t& token : lists.tokens) token = token_at(token);
  return lists;
}

namespace {

/// Gives the first of a list that probability, and the others what is left of theirs.
void trust(double confidence, float log_sum_exp, std::span<float> logits) {
  constexpr double least = 1e-4;
  const double sure = std::clamp(confidence, least, 1 - least);
  const double first = std::exp(std::min(0.0, double{logits[0]} - log_sum_exp));
  if (!(first > 0)) return;
  const double change = sure < first ? std::log(sure / first) : std::log((1 - sure) / std::max(least, 1 - first));
  for (float& logit : logits) logit = static_cast<float>(logit + std::min(0.0, change));
  if (sure >= first) logits[0] = static_cast<float>(log_sum_exp + std::log(sure));
}

}  // namespace

void Drafter::add_lists(const DraftTree& tree, uint32_t first, std::span<const BlockPlace> run, BlockDraft& draft) {
  const size_t listed = draft.candidates;
  const PlaceLists lists = lists_of(run);
  for (uint32_t node = first; node < tree.width(); ++node) {
    const BlockPlace place{tree[node].depth, tree[node].token};
    const auto made = static_cast<size_t>(std::ranges::find(run, place) - run.begin());
    if (made < run.size()) {
      const auto tokens = std::span(lists.tokens).subspan(made * listed, listed);
      const auto logits = std::span(lists.logits).subspan(made * listed, listed);
      std::vector<float> trusted(logits.begin(), logits.end());
      if (!lists.confidence.empty()) confidence_.push_back(lists.confidence[made]);
      if (by_confidence_ && !lists.confidence.empty()) {
        trust(lists.confidence[made], lists.log_sum_exp[made], trusted);
      }
      add_list(tokens, trusted, lists.log_sum_exp[made], config_.transformer.vocab, draft);
    } else {
      const auto known = static_cast<uint32_t>(std::ranges::find(places_, place) - places_.begin());
      const DepthCandidates same = draft.list(known);
      const std::vector<uint32_t> tokens(same.tokens.begin(), same.tokens.end());
      const std::vector<float> logits(same.logits.begin(), same.logits.end());
      draft.tokens.insert(draft.tokens.end(), tokens.begin(), tokens.end());
      draft.logits.insert(draft.logits.end(), logits.begin(), logits.end());
      draft.log_sum_exp.push_back(draft.log_sum_exp[known]);
      if (!confidence_.empty()) confidence_.push_back(confidence_[known]);
    }
    places_.push_back(place);
  }
}

Draft Drafter::read_results(uint32_t depths) {
  const DraftLayout layout(config_, candidates_, limits_.context);
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
  const DraftLayout layout(config_, candidates_, limits_.context);
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
  if (shape.paths > 0) weights_.markov->record_rows(record, shape.paths, *buffers_.logits);
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
  if (weights_.markov) {
    return weights_.markov->record_block(record, *buffers_.gathered, config_.transformer.residual_eps());
  }
  record(TopKArgs{.width = shape.depths,
                  .logits = buffers_.logits.get(),
                  .vocab = drafted_tokens(),
                  .k = candidates_,
                  .ids = tokens_.get(),
                  .values = logits_.get(),
                  .log_sum_exp = log_sum_exp_.get(),
                  .multiplier = config_.output_multiplier,
                  .softcap = config_.final_logit_softcapping});
  if (weights_.selector) {
    weights_.selector->record_block(record, *buffers_.gathered, config_.transformer.residual_eps());
  }
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
          .embedding_scale = config_.input_embedding_scale,
          .conv = conv_.get()};
}

}  // namespace canopy
