#pragma once
// The mode adaptive: each round verifies the width that is expected to emit the most tokens per second; autoregressive
// decoding is one of the choices.

#include "engine/planning/round_planner.h"
#include "engine/planning/speculation_state.h"
#include "engine/speculation/paper_rule.h"

namespace canopy {

class AdaptivePlanner final : public RoundPlanner {
 public:
  /// Starts a reply. Source and state must outlive the planner.
  AdaptivePlanner(DraftSource& source, SpeculationState& state);

  const DraftTree* plan(const RoundStart& start, RoundRecord& record, const std::stop_token& stop) override;
  void observe(RoundRecord& record) override;

 private:
  const DraftTree* build(const RoundStart& start, uint32_t depths, RoundRecord& record);

  DraftSource& source_;
  SpeculationState& state_;
  TreeDrafter trees_;
  ArPlanner ar_;
  uint64_t recordings_ = 0;  // SpeculationState::recordings() before the round
};

/// The published rule (CostPolicy::paper): drafts every round and ends the tree at the first node whose cost exceeds
/// its expected gain.
class PaperPlanner final : public RoundPlanner {
 public:
  /// Source and state must outlive the planner.
  PaperPlanner(const PaperRuleSettings& settings, DraftSource& source, SpeculationState& state);

  const DraftTree* plan(const RoundStart& start, RoundRecord& record, const std::stop_token& stop) override;
  void observe(RoundRecord& record) override;

 private:
  const DraftTree* build(const RoundStart& start, RoundRecord& record);

  PaperRuleSettings settings_;
  DraftSource& source_;
  SpeculationState& state_;
  TreeDrafter trees_;
  ArPlanner ar_;
};

}  // namespace canopy
