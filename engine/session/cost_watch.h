#pragma once
// What the rounds of a reply teach of the device's costs.

#include <cstdint>

#include "engine/model/drafter.h"
#include "engine/session/round_record.h"
#include "engine/session/speculation_state.h"

namespace canopy {

class CostWatch {
 public:
  /// Both must outlive the watch.
  CostWatch(const Drafter& drafter, SpeculationState& state) : drafter_(drafter), state_(state) {}

  /// Before the draft of a round.
  void begin();
  /// Features that wait to be injected by the round's draft.
  uint32_t backlog() const { return backlog_; }

  /// Works a round's times into the costs. False where they say nothing: a pass was prepared (recorded, its kernels
  /// compiled), which is paid for once and on a cold cache takes hundreds of passes.
  bool learn(const RoundRecord& record);

 private:
  const Drafter& drafter_;
  SpeculationState& state_;
  uint32_t backlog_ = 0;
  uint64_t recordings_ = 0;
};

/// What of a round is neither draft nor the target's pass, in milliseconds.
double other_ms(const RoundTimes& ms);

}  // namespace canopy
