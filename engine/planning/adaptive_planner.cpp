#include "engine/planning/adaptive_planner.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "engine/planning/stage_timer.h"

namespace canopy {

AdaptivePlanner::AdaptivePlanner(DraftSource& source, SpeculationState& state)
    : source_(source), state_(state), trees_(source) {
  state_.controller().begin_reply();
}

const DraftTree* AdaptivePlanner::plan(const RoundStart& start, RoundRecord& record, const std::stop_token& stop) {
  const uint32_t backlog = source_.backlog();
  recordings_ = state_.recordings();
  record.choice.limits = limits_of(start, source_.max_depth(), start.budget());
  const DraftPlan plan = state_.controller().plan(start.context, backlog, record.choice.limits, state_.cost());
  record.choice.reason = plan.reason;
  record.choice.ar_tokens_per_second = plan.ar_ms > 0 ? 1000 / plan.ar_ms : 0;
  record.predicted.verify = plan.verify_ms;
  record.predicted.other = plan.other_ms;
  if (!plan.draft || start.depths() == 0) return ar_.plan(start, record, stop);
  record.predicted.draft = plan.draft_ms;
  if (!draft_for(start, std::min(plan.depth, start.depths()), source_, trees_, record, stop)) return nullptr;
  const StageTimer timer(record.ms.build);
  return build(start, trees_.last().depths, record);
}

const DraftTree* AdaptivePlanner::build(const RoundStart& start, uint32_t depths, RoundRecord& record) {
  Controller& controller = state_.controller();
  trees_.begin(controller.calibration(depths));
  while (controller.wants_more(trees_.tree()) && trees_.next()) {
  }
  WidthChoice choice = controller.choose(trees_.tree(), trees_.candidates());
  record.choice.ar_tokens_per_second = choice.ar_tokens_per_second;
  record.choice.reason = std::move(choice.reason);
  record.choice.candidates = std::move(choice.candidates);
  record.predicted.draft = choice.draft_ms;
  record.predicted.verify = choice.verify_ms;
  record.predicted.other = choice.other_ms;
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
  if (ms.draft > 0) cost.observe_draft(record.backlog, record.context, ms.draft);
  cost.observe_other(record.width, other);
}

PaperPlanner::PaperPlanner(const PaperRuleSettings& settings, DraftSource& source, SpeculationState& state)
    : settings_(settings), source_(source), state_(state), trees_(source) {
  state_.controller().begin_reply();
}

const DraftTree* PaperPlanner::plan(const RoundStart& start, RoundRecord& record, const std::stop_token& stop) {
  if (start.depths() == 0 || start.budget() == 0) return ar_.plan(start, record, stop);
  record.choice.limits = limits_of(start, source_.max_depth(), start.budget());
  const uint32_t depths = std::min(start.depths(), source_.max_depth());
  if (!draft_for(start, depths, source_, trees_, record, stop)) return nullptr;
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
  state_.controller().watch(trees_.tree(), trees_.candidates());
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
