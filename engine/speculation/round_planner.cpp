#include "engine/speculation/round_planner.h"

#include <cmath>
#include <iterator>
#include <limits>
#include <string>
#include <utility>

#include "engine/speculation/acceptance.h"
#include "engine/speculation/beam_draft.h"
#include "engine/speculation/state_archive.h"

namespace canopy {

bool TreeDrafter::find(uint32_t root, uint32_t depths) {
  root_ = root;
  draft_ = nullptr;
  lists_.clear();
  more_.clear();
  found_ = &source_.from_text(depths);
  recycled_ = &source_.recycled(root, depths);
  return has_found();
}

bool TreeDrafter::draft(uint32_t root, const DraftWish& wish, const std::stop_token& stop) {
  const BlockDraft* const draft = source_.draft(root, wish, stop);
  if (draft == nullptr) return false;
  root_ = root;
  draft_ = draft;
  more_.clear();
  lists_.clear();
  for (uint32_t i = 0; i < draft_->lists(); ++i) lists_.push_back(draft_->list(i));
  return true;
}

void TreeDrafter::begin(std::span<const DepthCalibration> calibration, std::span<const DepthCalibration> groups) {
  if (!has_found()) return begin(calibration);
  begin_mixed(calibration);
  if (!found_->empty())
    builder_.add_tree(found_->earlier ? kFromEarlier : kFromSuffix, found_->nodes, calibration_of(groups, *found_));
  if (!recycled_->empty()) builder_.add_tree(kFromRecycling, recycled_->nodes, calibration_of(groups, *recycled_));
}

/// The model's draft alone, for now.
void TreeDrafter::begin_mixed(std::span<const DepthCalibration> calibration) {
  builder_.begin(root_);
  if (is_by_token()) {
    list_nodes();
    builder_.add_tree(source_.drafted_by(), nodes_, calibration);
  } else if (!lists_.empty()) {
    list_rows();
    builder_.add_rows(kFromDflash, std::span(rows_).first(lists_.size()), calibration);
  }
}

namespace {

/// The probability of a candidate; 0 where it is too small to be one.
double p_of(const DepthCandidates& depth, size_t rank) {
  return std::exp(std::min(0.0, depth.logits[rank] - depth.log_sum_exp));
}

}  // namespace

void TreeDrafter::list_nodes() {
  nodes_.clear();
  node_of_.clear();
  for (size_t i = 0; i < lists_.size(); ++i) {
    const DepthCandidates& list = lists_[i];
    const uint32_t parent = i == 0 ? CandidateNode::root : node_of_[draft_->behind[i]];
    const bool is_there = i == 0 || parent != CandidateNode::root;  // else its path is too improbable to be one
    for (size_t rank = 0; rank < list.tokens.size(); ++rank) {
      const double p = is_there ? p_of(list, rank) : 0;
      node_of_.push_back(p > 0 ? static_cast<uint32_t>(nodes_.size()) : CandidateNode::root);
      if (p > 0) nodes_.push_back({parent, list.tokens[rank], p});
    }
  }
}

void TreeDrafter::list_rows() {
  if (rows_.size() < lists_.size()) rows_.resize(lists_.size());
  for (size_t i = 0; i < lists_.size(); ++i) {
    const DepthCandidates& depth = lists_[i];
    std::vector<TokenCandidate>& row = rows_[i];
    row.clear();
    for (size_t rank = 0; rank < depth.tokens.size(); ++rank) {
      if (const double p = p_of(depth, rank); p > 0) row.push_back({depth.tokens[rank], p});
    }
  }
}

void TreeDrafter::begin(std::span<const DepthCalibration> calibration, uint32_t available) {
  if (is_by_token()) return begin_mixed(calibration);
  available_ = std::min(available, source_.drafted_tokens());
  builder_.begin(root_, lists_, available_, calibration);
}

void TreeDrafter::grow(PaperRule& rule) {
  while (rule.grow(builder_) == TreeStep::needs_candidates) {
    if (!fetch_more(builder_.starved_depth())) return rule.end(builder_);
  }
}

bool TreeDrafter::next() {
  TreeStep step = builder_.next();
  while (step == TreeStep::needs_candidates) {
    if (!fetch_more(builder_.starved_depth())) return false;
    step = builder_.next();
  }
  return step == TreeStep::added;
}

void TreeDrafter::build(uint32_t budget) {
  while (tree().drafted() < budget && next()) {
  }
}

bool TreeDrafter::fetch_more(uint32_t depth) {
  const uint32_t known = builder_.candidates_at(depth);
  const uint32_t count = std::min(available_, known * 4);
  auto place = std::lower_bound(more_.begin(), more_.end(), depth,
                                [](const MoreCandidates& each, uint32_t d) { return each.depth < d; });
  if (place == more_.end() || place->depth != depth) place = more_.insert(place, {.depth = depth});
  MoreCandidates& all = *place;
  // An earlier tree of this draft may have asked for more than this one has.
  if (all.tokens.size() <= known && !source_.more(depth, known, count, all.tokens, all.logits)) {
    if (all.tokens.empty()) more_.erase(place);
    return false;
  }
  const size_t used = std::min<size_t>(all.tokens.size(), available_);
  if (used <= known) return false;
  builder_.extend(depth, {std::span(all.tokens).first(used), std::span(all.logits).first(used),
                          double{draft_->log_sum_exp[depth - 1]}});
  return true;
}

std::shared_ptr<const KeptDraft> TreeDrafter::kept() const {
  return std::make_shared<const KeptDraft>(KeptDraft{*draft_, more_});
}

namespace {

/// The limits of a tree, for the round's record.
WidthLimits limits_of(const RoundStart& start, uint32_t block_depth, uint32_t budget) {
  WidthLimits limits;
  limits.budget = budget;
  limits.depth = block_depth;
  limits.tokens_left = start.remaining;
  limits.context_left = start.context_left;
  limits.rows = start.rows;
  return limits;
}

/// The limit of a tree's depth by the model that drafts; none where none does.
uint32_t block_depth(const DraftSource& source) {
  return source.max_depth() > 0 ? source.max_depth() : WidthLimits::none;
}

/// The best-first tree of what costs no pass, no deeper than `depths`; null where that is nothing. The controller,
/// which may be null, learns from it.
const DraftTree* find_free(const RoundStart& start, uint32_t depths, TreeDrafter& trees,
                           std::span<const DepthCalibration> groups, Controller* controller, RoundRecord& record) {
  if (depths == 0 || start.budget() == 0) return nullptr;
  const StageTimer timer(record.ms.build);
  const bool is_found = trees.find(start.root, depths);
  record.match = trees.found().match;
  if (!is_found) return nullptr;
  trees.begin({}, groups);
  trees.build(start.budget());
  if (controller != nullptr) controller->watch_free(trees.tree(), trees.found(), trees.recycled());
  return &trees.tree();
}

/// Drafts for a round; the record gets what that took. False when stop was requested.
bool draft_for(const RoundStart& start, const DraftWish& wish, DraftSource& source, TreeDrafter& trees,
               RoundRecord& record, const std::stop_token& stop) {
  record.backlog = source.backlog();
  {
    const StageTimer timer(record.ms.draft);
    if (!trees.draft(start.root, wish, stop)) return false;
  }
  record.device_ms.draft = trees.device_ms();
  return true;
}

}  // namespace

void keep_draft(const RoundStart& start, const TreeDrafter& trees, RoundRecord& record) {
  if (start.keep_draft) record.draft = trees.kept();
}

TraceDrafting drafting_before(const RoundStart& first, DecodeMode mode, const DraftSource* source,
                              SpeculationState& state) {
  const bool measured = !state.table().verify_points().empty();
  const bool predicts = mode == DecodeMode::adaptive || (mode != DecodeMode::ar && measured);
  if (predicts) state.cost();
  TraceDrafting drafting;
  drafting.rules = controller_rules;
  drafting.block = state.block_size();
  drafting.rows = first.rows;
  drafting.committed = first.context;
  drafting.remaining = first.remaining;
  drafting.policy = to_string(state.policy());
  drafting.priced = state.is_priced();
  if (state.is_priced()) drafting.roofline = state.roofline();
  if (measured) drafting.costs = state.shared_table();
  if (source != nullptr) {
    drafting.backlog = source->backlog();
    drafting.drafted_tokens = source->drafted_tokens();
    drafting.beams = source->most_beams();
    drafting.most_waiting = source->most_waiting();
  }
  StateWriter writer(drafting.state);
  state.archive(writer);
  return drafting;
}

void take_times(const PassCost& times, const BlockDraft* draft, RoundRecord& record) {
  record.ms = {};
  record.device_ms = {};
  if (draft != nullptr) record.ms.draft = times.whole_draft_ms(record.backlog, record.context, draft->beams());
  record.ms.verify = times.verify_ms(record.width, record.context);
  record.ms.other = times.other_ms(record.width);
}

const DraftTree* ArPlanner::plan(const RoundStart& start, RoundRecord& record, const std::stop_token&) {
  record.shape = DecodeMode::ar;
  if (record.choice.reason.empty()) record.choice.reason = "Plain decoding was asked for.";
  tree_.reset(start.root);
  return &tree_;
}

namespace {

/// In a fixed mode a model that drafts token by token goes on with the paths that are as probable as this.
constexpr double kLeastFixed = 0.1;
constexpr double kFixedCosts[] = {1 * kLeastFixed, 2 * kLeastFixed, 3 * kLeastFixed, 4 * kLeastFixed,
                                  5 * kLeastFixed, 6 * kLeastFixed, 7 * kLeastFixed, 8 * kLeastFixed};
static_assert(std::size(kFixedCosts) == kMostBeams);

}  // namespace

FixedPlanner::FixedPlanner(DecodeMode mode, uint32_t budget, DraftSource& source, SpeculationState* state)
    : mode_(mode), budget_(budget), source_(source), state_(state), trees_(source) {
  if (state_ != nullptr) state_->controller().begin_reply();
}

const DraftTree* FixedPlanner::plan(const RoundStart& start, RoundRecord& record, const std::stop_token& stop) {
  const uint32_t budget = mode_ == DecodeMode::chain ? start.budget() : std::min(start.budget(), budget_);
  uint32_t depths = std::min({start.depths(), budget, source_.max_depth()});
  record.choice.limits = limits_of(start, block_depth(source_), budget);
  record.choice.reason = mode_ == DecodeMode::chain
                             ? "A chain was asked for."
                             : "A tree of " + std::to_string(budget_) + " drafted nodes was asked for.";
  if (std::min(start.depths(), budget) == 0) {
    record.choice.reason = "The reply or the context ends here: nothing was drafted.";
    return ar_.plan(start, record, stop);
  }
  // Not what was learnt of them: the same prompt gets the same trees, whatever was written before.
  const std::span<const DepthCalibration> groups = kAssumedFree;
  Controller* const watches = state_ != nullptr ? &state_->controller() : nullptr;
  const bool is_found = find_free(start, std::min(start.depths(), budget), trees_, groups, watches, record) != nullptr;
  if (depths == 0 && !is_found) {
    record.choice.reason = "Nothing was drafted: nothing like the last words is known.";
    return ar_.plan(start, record, stop);
  }
  if (depths > 0) {
    const size_t beams = mode_ == DecodeMode::chain ? 1 : std::min(source_.most_beams(), kMostBeams);
    DraftWish wish{depths, std::span(kFixedCosts).first(beams)};
    if (mode_ == DecodeMode::tree) wish.nodes = budget;
    if (!draft_for(start, wish, source_, trees_, record, stop)) return nullptr;
    depths = trees_.last().depths;
  }
  const StageTimer timer(record.ms.build);
  record.shape = mode_;
  uint32_t chain = depths + 1;
  if (mode_ == DecodeMode::chain && is_found) {
    trees_.begin({}, groups);
    trees_.build_chain(budget);
    chain = trees_.tree().width();
  }
  trees_.begin({}, groups);
  if (mode_ == DecodeMode::tree) trees_.build(budget);
  if (depths > 0 && state_ != nullptr) watch(start, depths, mode_ == DecodeMode::chain ? chain : budget + 1, record);
  if (mode_ == DecodeMode::chain) {
    trees_.begin({}, groups);
    trees_.build_chain(is_found ? budget : depths);
  } else if (trees_.tree().drafted() > budget) {
    trees_.cut(budget + 1);
  }
  if (depths == 0) forecast(start, 0, trees_.tree().width(), record);
  if (depths > 0) keep_draft(start, trees_, record);
  return &trees_.tree();
}

/// What is watched is a best-first tree, whatever is verified, and one that shows more widths than a narrow one: some
/// 20 microseconds. No wider than the draft has candidates, so that none are fetched for it.
void FixedPlanner::watch(const RoundStart& start, uint32_t depths, uint32_t width, RoundRecord& record) {
  constexpr uint32_t watched = 63;
  trees_.build(std::min(watched, trees_.last().candidates));
  const DraftTree& tree = trees_.tree();
  state_->controller().watch(tree, trees_.candidates(), {}, trees_.last().behind);
  forecast(start, depths, mode_ == DecodeMode::chain ? width : std::min(width, tree.width()), record);
}

/// Of the tree as it is: what its widths promise, where costs were measured.
void FixedPlanner::forecast(const RoundStart& start, uint32_t depths, uint32_t width, RoundRecord& record) {
  if (state_ == nullptr || state_->table().verify_points().empty()) return;
  const PassCost& cost = state_->cost();
  if (depths > 0) {
    record.predicted.draft = cost.whole_draft_ms(record.backlog, start.context, trees_.last().beams());
  }
  record.choice.candidates =
      state_->controller().forecast(trees_.tree(), depths, width, start.context, record.predicted.draft, cost);
  record.choice.ar_tokens_per_second = 1000 / cost.ar_ms(start.context);
  record.predicted.verify = cost.verify_ms(width, start.context);
  record.predicted.other = cost.other_ms(width);
}

// What its passes took is not worked into the costs: where only one width is ever measured, the others would drift with
// it, autoregressive decoding among them.
void FixedPlanner::observe(RoundRecord& record) {
  if (state_ != nullptr) state_->controller().observe({.emitted = record.emitted});
}

namespace {

/// Paths that a block whose tokens depend on those before them goes on with before the width of the tree is chosen:
/// more nodes are rarely worth their rows, and each few cost a reading of the drafter's small tables.
constexpr uint32_t kAdaptivePaths = 24;

}  // namespace

AdaptivePlanner::AdaptivePlanner(DraftSource& source, SpeculationState& state)
    : source_(source), state_(state), trees_(source) {
  state_.controller().begin_reply();
}

const DraftTree* AdaptivePlanner::plan(const RoundStart& start, RoundRecord& record, const std::stop_token& stop) {
  const uint32_t backlog = source_.backlog();
  recordings_ = state_.recordings();
  record.choice.limits = limits_of(start, block_depth(source_), start.budget());
  Controller& controller = state_.controller();
  const DraftTree* const found =
      find_free(start, start.depths(), trees_, controller.free_calibration(), &controller, record);
  WidthLimits limits = record.choice.limits;
  limits.depth = source_.max_depth();  // 0: no drafter is asked
  const DraftPlan plan = controller.plan(start.context, backlog, limits, state_.cost(), found);
  record.choice.reason = limits.depth > 0 || found != nullptr ? plan.reason : reason::nothing_found();
  record.choice.ar_tokens_per_second = plan.ar_ms > 0 ? 1000 / plan.ar_ms : 0;
  record.predicted.verify = plan.verify_ms;
  record.predicted.other = plan.other_ms;
  if (plan.free) {
    describe(controller.free_choice(), record);
    trees_.cut(controller.free_choice().best.width);
    record.shape = DecodeMode::tree;
    return found;
  }
  if (!plan.draft || start.depths() == 0) return ar_.plan(start, record, stop);
  record.predicted.draft = plan.draft_ms;
  const uint32_t depths = std::min(plan.depth, start.depths());
  const std::span<const double> costs = plan.costs;
  const DraftWish wish{depths, costs.first(std::min<size_t>(costs.size(), source_.most_beams())),
                       controller.calibration(depths), std::min(start.budget(), kAdaptivePaths), true};
  if (!draft_for(start, wish, source_, trees_, record, stop)) return nullptr;
  const StageTimer timer(record.ms.build);
  if (trees_.last().is_by_token()) {
    controller.drafted(state_.cost().whole_draft_ms(record.backlog, start.context, trees_.last().beams()));
  }
  return build(start, trees_.last().depths, record);
}

void AdaptivePlanner::describe(WidthChoice choice, RoundRecord& record) const {
  record.choice.ar_tokens_per_second = choice.ar_tokens_per_second;
  record.choice.reason = std::move(choice.reason);
  record.choice.candidates = std::move(choice.candidates);
  record.predicted.draft = choice.draft_ms;
  record.predicted.verify = choice.verify_ms;
  record.predicted.other = choice.other_ms;
}

const DraftTree* AdaptivePlanner::build(const RoundStart& start, uint32_t depths, RoundRecord& record) {
  Controller& controller = state_.controller();
  trees_.begin(controller.calibration(depths), controller.free_calibration());
  while (controller.wants_more(trees_.tree()) && trees_.next()) {
  }
  const WidthChoice choice = controller.choose(trees_.tree(), trees_.candidates(), trees_.last().behind);
  describe(choice, record);
  keep_draft(start, trees_, record);
  switch (choice.shape) {
    case DecodeMode::adaptive:  // no shape of a round
    case DecodeMode::ar: return ar_.plan(start, record, {});
    case DecodeMode::chain:
      trees_.begin();
      trees_.build_chain(choice.best.width - 1);
      record.shape = DecodeMode::chain;
      break;
    case DecodeMode::tree:
      trees_.cut(choice.best.width);
      record.shape = DecodeMode::tree;
      break;
  }
  return &trees_.tree();
}

void AdaptivePlanner::observe(RoundRecord& record) {
  const RoundTimes& ms = record.ms;
  const double other = ms.build + ms.walk + ms.commit + ms.other;
  if (state_.recordings() != recordings_) {
    // Preparing a pass is paid for once, and on a cold cache takes hundreds of passes: it must not count against
    // drafting.
    record.teaches = false;
    constexpr double unknown = std::numeric_limits<double>::quiet_NaN();
    state_.controller().observe({record.emitted, unknown, unknown, unknown});
    return;
  }
  state_.controller().observe({record.emitted, ms.draft, ms.verify, other});
  ObservedCost& cost = state_.cost();
  cost.observe_verify(record.width, record.context, ms.verify);
  if (ms.draft > 0) {
    // Of a draft made token by token, the share of what comes before the first is told.
    const double first = cost.draft_ms(record.backlog, record.context);
    const double whole = cost.whole_draft_ms(record.backlog, record.context, trees_.last().beams());
    cost.observe_draft(record.backlog, record.context, ms.draft * (first / whole));
  }
  cost.observe_other(record.width, other);
}

PaperPlanner::PaperPlanner(const PaperRuleSettings& settings, DraftSource& source, SpeculationState& state)
    : settings_(settings), source_(source), state_(state), trees_(source) {
  state_.controller().begin_reply();
}

const DraftTree* PaperPlanner::plan(const RoundStart& start, RoundRecord& record, const std::stop_token& stop) {
  if (std::min({start.depths(), start.budget(), source_.max_depth()}) == 0) return ar_.plan(start, record, stop);
  record.choice.limits = limits_of(start, source_.max_depth(), start.budget());
  const uint32_t depths = std::min(start.depths(), source_.max_depth());
  DraftWish wish{depths};
  wish.nodes = std::min(settings_.max_width, start.rows);
  if (!draft_for(start, wish, source_, trees_, record, stop)) return nullptr;
  const StageTimer timer(record.ms.build);
  return build(start, record);
}

const DraftTree* PaperPlanner::build(const RoundStart& start, RoundRecord& record) {
  PaperRuleSettings settings = settings_;
  settings.max_width = std::min(settings.max_width, start.rows);
  settings.min_width = std::min(settings.min_width, settings.max_width);
  const PassCost& cost = state_.cost();
  PaperRule rule(settings, cost, record.backlog, start.context);
  trees_.begin({}, paper_candidates);
  trees_.grow(rule);
  state_.controller().watch(trees_.tree(), trees_.candidates(), {}, trees_.last().behind);
  keep_draft(start, trees_, record);

  const uint32_t width = trees_.tree().width();
  record.shape = DecodeMode::tree;
  record.predicted.draft = cost.draft_ms(record.backlog, start.context);
  record.predicted.verify = cost.verify_ms(width, start.context);
  record.predicted.other = cost.other_ms(width);
  WidthCurves visited;
  visited.tree = rule.expected_by_width();
  visited.ms = rule.ms_by_width();
  record.choice.candidates = forecasts(visited, width);
  record.choice.ar_tokens_per_second = 1000 / cost.ar_ms(start.context);
  record.choice.reason = "The paper's stop rule visited " + std::to_string(rule.visited()) + " nodes and kept " +
                         std::to_string(width) + " rows.";
  return &trees_.tree();
}

void PaperPlanner::observe(RoundRecord& record) {
  state_.controller().observe({.emitted = record.emitted});
}

}  // namespace canopy
