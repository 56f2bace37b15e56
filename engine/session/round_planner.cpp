#include "engine/session/round_planner.h"

#include <algorithm>
#include <string>

#include "engine/session/stage_timer.h"

namespace canopy {

RoundLimits limits_of(const RoundStart& start, uint32_t block_depth, uint32_t budget) {
  RoundLimits limits;
  limits.budget = budget;
  limits.depth = block_depth;
  limits.tokens_left = start.remaining;
  limits.context_left = start.context_left;
  limits.rows = start.rows;
  return limits;
}

const DraftTree* PlainPlanner::plan(const RoundStart& start, RoundRecord& record, const std::function<bool()>&) {
  record.shape = DecodeMode::ar;
  if (record.choice.reason.empty()) record.choice.reason = "Plain decoding was asked for.";
  tree_.reset(start.root);
  return &tree_;
}

FixedPlanner::FixedPlanner(DecodeMode mode, uint32_t budget, Drafter& drafter, SpeculationState* state)
    : mode_(mode), budget_(budget), drafter_(drafter), state_(state), trees_(drafter) {
  if (state_ != nullptr) state_->controller().begin_reply();
}

const DraftTree* FixedPlanner::plan(const RoundStart& start, RoundRecord& record,
                                    const std::function<bool()>& keep_going) {
  const uint32_t budget = mode_ == DecodeMode::chain ? start.budget() : std::min(start.budget(), budget_);
  const uint32_t depths = std::min({start.depths(), budget, drafter_.max_depth()});
  record.choice.limits = limits_of(start, drafter_.max_depth(), budget);
  record.choice.reason = mode_ == DecodeMode::chain
                             ? "A chain was asked for."
                             : "A tree of " + std::to_string(budget_) + " drafted nodes was asked for.";
  if (depths == 0) {
    record.choice.reason = "The reply or the context ends here: nothing was drafted.";
    return plain_.plan(start, record, keep_going);
  }
  {
    const StageTimer timer(record.ms.draft);
    if (!trees_.draft(start.root, depths, keep_going)) return nullptr;
  }
  record.device_ms.draft = drafter_.device_ms();
  const StageTimer timer(record.ms.build);
  build(depths, budget);
  record.shape = mode_;
  return &trees_.tree();
}

void FixedPlanner::build(uint32_t depths, uint32_t budget) {
  // What is watched is a best-first tree, whatever is verified, and one that shows more widths than a narrow one: some
  // 20 microseconds. No wider than the draft has candidates, so that none are fetched for it.
  constexpr uint32_t watched = 63;
  const bool is_chain = mode_ == DecodeMode::chain;
  trees_.begin();
  trees_.build(is_chain ? 0 : budget);
  if (state_ != nullptr) {
    trees_.build(std::min(watched, trees_.last().candidates));
    state_->controller().watch(trees_.tree(), trees_.candidates());
  }
  if (is_chain) {
    trees_.begin();
    trees_.build_chain(depths);
  } else if (trees_.tree().drafted() > budget) {
    trees_.cut(budget + 1);
  }
}

void FixedPlanner::observe(const RoundRecord& record) {
  if (state_ != nullptr) state_->controller().observe({.emitted = record.emitted});
}

}  // namespace canopy
