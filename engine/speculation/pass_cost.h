#pragma once
// Interface for the times of passes on this device, used by the choice of a width. Implementations: the measured table,
// the roofline fitted to it, and the made-up devices of the simulator.

#include <cstdint>

namespace canopy {

class PassCost {
 public:
  virtual ~PassCost() = default;

  /// Milliseconds of the target's pass over `width` rows (1 ...) behind `context` committed positions, its submission
  /// and the download of its result included; positive and finite.
  virtual double verify_ms(uint32_t width, uint32_t context) const = 0;

  /// Milliseconds of the drafter: `backlog` features are injected, then one block is drafted.
  virtual double draft_ms(uint32_t backlog, uint32_t context) const = 0;

  /// Milliseconds of the rest of a round of `width` rows: build, walk, commit. `width` 1 is an AR round.
  virtual double other_ms(uint32_t width) const = 0;

  double ar_ms(uint32_t context) const { return verify_ms(1, context) + other_ms(1); }
  double round_ms(uint32_t width, uint32_t backlog, uint32_t context) const {
    return draft_ms(backlog, context) + verify_ms(width, context) + other_ms(width);
  }
};

}  // namespace canopy
