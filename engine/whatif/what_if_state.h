#pragma once
// What a re-run knows of costs and of the drafter, from reply to reply.

#include <memory>
#include <optional>
#include <span>

#include "engine/planning/speculation_state.h"
#include "engine/whatif/what_if.h"

namespace canopy {

class WhatIfState {
 public:
  /// Throws bad_input where the wish needs costs and there are none. The replies must outlive it.
  WhatIfState(std::span<const RecordedReply> replies, const WhatIfWish& wish);
  WhatIfState(const WhatIfState&) = delete;
  WhatIfState& operator=(const WhatIfState&) = delete;

  /// As a reply finds it that is written in this mode.
  SpeculationState& before(const RecordedReply& reply, DecodeMode mode, CostPolicy policy);
  /// What rounds take; null: as recorded.
  const PassCost* times() const { return times_; }
  /// Features that waited when the reply before ended, where that was not as recorded.
  std::optional<uint32_t> left() const { return table_ ? left_ : std::nullopt; }
  void leave(uint32_t waiting) { left_ = waiting; }
  /// The next observed round counts as one that prepared passes.
  void prepare() { ++prepared_; }

 private:
  std::unique_ptr<SpeculationState> make(const RecordedReply& reply, CostTable table) const;
  /// As it was before the reply was recorded; nothing where that was not recorded.
  std::unique_ptr<SpeculationState> restored(const RecordedReply& reply) const;
  void take(CostTable table, const RecordedReply& first);

  std::optional<CostTable> table_;  // that the choice of widths starts from; none: as recorded
  std::optional<CostTable> clock_;
  std::shared_ptr<const PassCost> own_times_;
  const PassCost* times_ = nullptr;
  uint64_t prepared_ = 0;
  std::optional<uint32_t> left_;
  std::unique_ptr<SpeculationState> state_;
};

}  // namespace canopy
