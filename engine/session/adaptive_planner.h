#pragma once
// The mode adaptive: each round verifies the width that is expected to emit the most tokens per second; autoregressive
// decoding is one of the choices.

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
  uint32_t backlog_ = 0;     // features the round's draft injects
  uint64_t recordings_ = 0;  // SpeculationState::recordings() before the round
};

/// The published rule (CostPolicy::paper): drafts every round and ends the tree at the first node whose cost exceeds
/// its expected gain.
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
