#include "engine/session/round_planner.h"

#include <algorithm>

#include "engine/session/stage_timer.h"

namespace canopy {

const DraftTree* PlainPlanner::plan(const RoundStart& start, RoundRecord& record, const std::function<bool()>&) {
  record.shape = DecodeMode::ar;
  tree_.reset(start.root);
  return &tree_;
}

const DraftTree* FixedPlanner::plan(const RoundStart& start, RoundRecord& record,
                                    const std::function<bool()>& keep_going) {
  const uint32_t budget = mode_ == DecodeMode::chain ? start.budget : std::min(start.budget, budget_);
  const uint32_t depths = std::min({start.depths, budget, drafter_.max_depth()});
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
