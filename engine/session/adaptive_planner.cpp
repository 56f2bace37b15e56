#include "engine/session/adaptive_planner.h"

#include <algorithm>
#include <limits>

#include "engine/session/stage_timer.h"

namespace canopy {
namespace {

void note_decision(const RoundDecision& decision, RoundChoice& choice) {
  choice.ar_tokens_per_second = decision.ar_tokens_per_second;
  choice.reason = decision.reason;
  for (const WidthForecast& width : decision.candidates) {
    choice.candidates.push_back({width.width, width.expected, width.ms});
  }
}

}  // namespace

AdaptivePlanner::AdaptivePlanner(Drafter& drafter, SpeculationState& state)
    : drafter_(drafter), state_(state), trees_(drafter) {
  state_.controller().begin_reply();
}

WidthLimits AdaptivePlanner::limits(const RoundStart& start) const {
  WidthLimits limits;
  limits.budget = start.budget();
  limits.depth = drafter_.max_depth();
  limits.tokens_left = start.remaining;
  limits.context_left = start.context_left;
  limits.rows = start.rows;
  return limits;
}

const DraftTree* AdaptivePlanner::plan(const RoundStart& start, RoundRecord& record,
                                       const std::function<bool()>& keep_going) {
  backlog_ = drafter_.backlog();
  recordings_ = state_.recordings();
  const RoundPlan plan = state_.controller().plan(start.context, backlog_, limits(start), state_.cost());
  record.choice.limits = limits_of(start, drafter_.max_depth(), start.budget());
  record.choice.reason = plan.reason;
  record.choice.ar_tokens_per_second = plan.ar_ms > 0 ? 1000 / plan.ar_ms : 0;
  record.predicted.verify = plan.ar_ms;
  if (!plan.draft || start.depths() == 0) return plain_.plan(start, record, keep_going);
  record.predicted.draft = plan.draft_ms;
  {
    const StageTimer timer(record.ms.draft);
    if (!trees_.draft(start.root, std::min(plan.depth, start.depths()), keep_going)) return nullptr;
  }
  record.device_ms.draft = drafter_.device_ms();
  const StageTimer timer(record.ms.build);
  return build(start, trees_.last().depths, record);
}

const DraftTree* AdaptivePlanner::build(const RoundStart& start, uint32_t depths, RoundRecord& record) {
  Controller& controller = state_.controller();
  trees_.begin(controller.calibration(depths));
  while (controller.wants_more(trees_.tree()) && trees_.next()) {
  }
  const RoundDecision decision = controller.choose(trees_.tree(), trees_.candidates());
  note_decision(decision, record.choice);
  record.predicted.draft = decision.draft_ms;
  record.predicted.verify = decision.verify_ms;
  record.predicted.other = decision.other_ms;
  switch (decision.shape) {
    case RoundShape::plain: return plain_.plan(start, record, {});
    case RoundShape::chain:
      trees_.begin();
      trees_.build_chain(decision.width - 1);
      record.shape = DecodeMode::chain;
      break;
    case RoundShape::tree:
      trees_.cut(decision.width);
      record.shape = DecodeMode::tree;
      break;
  }
  return &trees_.tree();
}

void AdaptivePlanner::observe(const RoundRecord& record) {
  const RoundTimes& ms = record.ms;
  const double other = ms.build + ms.walk + ms.commit + ms.other;
  if (state_.recordings() != recordings_) {
    // Preparing a pass is paid for once, and on a cold cache takes hundreds of passes: it must not count against
    // drafting.
    constexpr double unknown = std::numeric_limits<double>::quiet_NaN();
    state_.controller().observe({record.emitted, unknown, unknown, unknown});
    return;
  }
  state_.controller().observe({record.emitted, ms.draft, ms.verify, other});
  ObservedCost& cost = state_.cost();
  cost.observe_verify(record.width, record.context, ms.verify);
  if (ms.draft > 0) cost.observe_draft(backlog_, record.context, ms.draft);
  cost.observe_other(record.width, other);
}

const DraftTree* PaperPlanner::plan(const RoundStart& start, RoundRecord& record,
                                    const std::function<bool()>& keep_going) {
  if (start.depths() == 0 || start.budget() == 0) return plain_.plan(start, record, keep_going);
  const uint32_t backlog = drafter_.backlog();
  record.choice.limits = limits_of(start, drafter_.max_depth(), start.budget());
  {
    const StageTimer timer(record.ms.draft);
    if (!trees_.draft(start.root, std::min(start.depths(), drafter_.max_depth()), keep_going)) return nullptr;
  }
  record.device_ms.draft = drafter_.device_ms();
  const StageTimer timer(record.ms.build);
  PaperRuleSettings settings = settings_;
  settings.max_width = std::min(settings.max_width, start.rows);
  settings.min_width = std::min(settings.min_width, settings.max_width);
  PaperRule rule(settings, state_.cost(), backlog, start.context);
  trees_.begin({}, paper_candidates);
  trees_.grow(rule);
  record.shape = DecodeMode::tree;
  record.choice.reason = "The paper's stop rule visited " + std::to_string(rule.visited()) + " nodes and kept " +
                         std::to_string(trees_.tree().width()) + " rows.";
  return &trees_.tree();
}

}  // namespace canopy
