#pragma once
// The mode adaptive: each round the width that promises the most tokens a second, autoregressive decoding among them
// (design.md, section 3).

#include "engine/session/round_planner.h"
#include "engine/session/speculation_state.h"
#include "engine/speculation/paper_rule.h"

namespace canopy {

class AdaptivePlanner final : public RoundPlanner {
 public:
  /// Starts a reply behind a sequence that has a drafter. Sequence and state must outlive the planner.
  AdaptivePlanner(Sequence& sequence, SpeculationState& state);

  const DraftTree* plan(const RoundStart& start, RoundRecord& record, const std::stop_token& stop) override;
  void observe(const RoundRecord& record) override;

 private:
  const DraftTree* build(const RoundStart& start, uint32_t depths, RoundRecord& record);

  Sequence& sequence_;
  SpeculationState& state_;
  TreeDrafter trees_;
  ArPlanner ar_;
  uint32_t backlog_ = 0;     // of the round under way
  uint64_t recordings_ = 0;  // before it
};

/// The published rule (CostPolicy::paper): drafts every round and stops the tree at the first node that does not pay.
class PaperPlanner final : public RoundPlanner {
 public:
  /// The sequence has a drafter; it and the state must outlive the planner.
  PaperPlanner(const PaperRuleSettings& settings, Sequence& sequence, SpeculationState& state);

  const DraftTree* plan(const RoundStart& start, RoundRecord& record, const std::stop_token& stop) override;
  void observe(const RoundRecord& record) override;

 private:
  const DraftTree* build(const RoundStart& start, uint32_t backlog, RoundRecord& record);

  PaperRuleSettings settings_;
  Sequence& sequence_;
  SpeculationState& state_;
  TreeDrafter trees_;
  ArPlanner ar_;
};

}  // namespace canopy
