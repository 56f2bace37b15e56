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
  trees_.begin();
  if (mode_ == DecodeMode::chain) {
    trees_.build_chain(depths);
  } else {
    trees_.build(budget);
  }
  record.shape = mode_;
  return &trees_.tree();
}

}  // namespace canopy
