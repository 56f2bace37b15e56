#pragma once
// A step of a recurrence over the rows of a pass (delta_net.h).

#include <cstdint>

namespace canopy {

/// A step over a row, as kernels read it (uint32 x 4; shaders/delta.glsl mirrors it).
struct DeltaStep {
  static constexpr uint32_t kNone = 0xFFFFFFFF;
  static constexpr uint32_t kSpare = 0x80000000;  // in `from` and `to`: an index of spare states, not of kept ones

  uint32_t row = kNone;     // kNone: the step does nothing; it fills a list up to a width
  uint32_t parent = kNone;  // the step of the row's parent; kNone: the text, of which `from` is the kept state
  uint32_t from = kNone;    // where the state before the row is; kNone: as the step before has left it
  uint32_t to = kNone;      // where the state after the row is put; kNone: nowhere
  bool operator==(const DeltaStep&) const = default;
};
static_assert(sizeof(DeltaStep) == 16);

}  // namespace canopy
