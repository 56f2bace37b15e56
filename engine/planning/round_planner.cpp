#include "engine/planning/round_planner.h"

#include <algorithm>
#include <string>

#include "engine/planning/stage_timer.h"
#include "engine/trace/state_bytes.h"

namespace canopy {

WidthLimits limits_of(const RoundStart& start, uint32_t block_depth, uint32_t budget) {
  WidthLimits limits;
  limits.budget = budget;
  limits.depth = block_depth;
  limits.tokens_left = start.remaining;
  limits.context_left = start.context_left;
  limits.rows = start.rows;
  return limits;
}

bool draft_for(const RoundStart& start, uint32_t depths, DraftSource& source, TreeDrafter& trees, RoundRecord& record,
               const std::stop_token& stop) {
  record.backlog = source.backlog();
  {
    const StageTimer timer(record.ms.draft);
    if (!trees.draft(start.root, depths, stop)) return false;
  }
  record.device_ms.draft = trees.device_ms();
  return true;
}

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
    drafting.most_waiting = source->most_waiting();
  }
  StateWriter writer(drafting.state);
  state.archive(writer);
  return drafting;
}

void take_times(const PassCost& times, bool drafted, RoundRecord& record) {
  record.ms = {};
  record.device_ms = {};
  if (drafted) record.ms.draft = times.draft_ms(record.backlog, record.context);
  record.ms.verify = times.verify_ms(record.width, record.context);
  record.ms.other = times.other_ms(record.width);
}

const DraftTree* ArPlanner::plan(const RoundStart& start, RoundRecord& record, const std::stop_token&) {
  record.shape = DecodeMode::ar;
  if (record.choice.reason.empty()) record.choice.reason = "Plain decoding was asked for.";
  tree_.reset(start.root);
  return &tree_;
}

FixedPlanner::FixedPlanner(DecodeMode mode, uint32_t budget, DraftSource& source, SpeculationState* state)
    : mode_(mode), budget_(budget), source_(source), state_(state), trees_(source) {
  if (state_ != nullptr) state_->controller().begin_reply();
}

const DraftTree* FixedPlanner::plan(const RoundStart& start, RoundRecord& record, const std::stop_token& stop) {
  const uint32_t budget = mode_ == DecodeMode::chain ? start.budget() : std::min(start.budget(), budget_);
  const uint32_t depths = std::min({start.depths(), budget, source_.max_depth()});
  record.choice.limits = limits_of(start, source_.max_depth(), budget);
  record.choice.reason = mode_ == DecodeMode::chain
                             ? "A chain was asked for."
                             : "A tree of " + std::to_string(budget_) + " drafted nodes was asked for.";
  if (depths == 0) {
    record.choice.reason = "The reply or the context ends here: nothing was drafted.";
    return ar_.plan(start, record, stop);
  }
  if (!draft_for(start, depths, source_, trees_, record, stop)) return nullptr;
  const StageTimer timer(record.ms.build);
  record.shape = mode_;
  trees_.begin();
  if (mode_ == DecodeMode::tree) trees_.build(budget);
  if (state_ != nullptr) watch(start, depths, budget, record);
  if (mode_ == DecodeMode::chain) {
    trees_.begin();
    trees_.build_chain(depths);
  } else if (trees_.tree().drafted() > budget) {
    trees_.cut(budget + 1);
  }
  keep_draft(start, trees_, record);
  return &trees_.tree();
}

/// What is watched is a best-first tree, whatever is verified, and one that shows more widths than a narrow one: some
/// 20 microseconds. No wider than the draft has candidates, so that none are fetched for it.
void FixedPlanner::watch(const RoundStart& start, uint32_t depths, uint32_t budget, RoundRecord& record) {
  constexpr uint32_t watched = 63;
  trees_.build(std::min(watched, trees_.last().candidates));
  const DraftTree& tree = trees_.tree();
  state_->controller().watch(tree, trees_.candidates());
  if (state_->table().verify_points().empty()) return;
  const PassCost& cost = state_->cost();
  const uint32_t width = mode_ == DecodeMode::chain ? depths + 1 : std::min(budget + 1, tree.width());
  record.choice.candidates = state_->controller().forecast(tree, depths, width, start.context, record.backlog, cost);
  record.choice.ar_tokens_per_second = 1000 / cost.ar_ms(start.context);
  record.predicted.draft = cost.draft_ms(record.backlog, start.context);
  record.predicted.verify = cost.verify_ms(width, start.context);
  record.predicted.other = cost.other_ms(width);
}

// What its passes took is not worked into the costs: where only one width is ever measured, the others would drift with
// it, autoregressive decoding among them.
void FixedPlanner::observe(RoundRecord& record) {
  if (state_ != nullptr) state_->controller().observe({.emitted = record.emitted});
}

}  // namespace canopy
