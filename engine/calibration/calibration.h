#pragma once
// Calibration: measures how long passes take on this device with this model, within a given time (design.md, section
// 3).

#include <cstdint>
#include <functional>
#include <vector>

#include "engine/speculation/cost_table.h"

namespace canopy {

/// Runs single passes and returns their duration.
class PassTimer {
 public:
  virtual ~PassTimer() = default;

  /// Milliseconds of one pass of the target as PassCost::verify_ms() counts them. The contents of the cache do not
  /// matter. The first pass of a width may take longer, since it also prepares buffers and pipelines; calibrate()
  /// allows for that.
  virtual double verify_ms(uint32_t width, uint32_t context) = 0;
  /// Milliseconds of one pass of the drafter behind an injection of `backlog` features.
  virtual double draft_ms(uint32_t backlog, uint32_t context) = 0;

  /// Asked before every pass; returning true ends the calibration with Error(cancelled).
  virtual bool stopped() const { return false; }
  /// Current time in seconds, on the clock by which the budget is measured.
  virtual double now();
};

struct CalibrationPlan {
  uint32_t block = 16;          // rows of the drafter's pass, B
  uint32_t max_width = 512;     // rows of the widest pass to measure
  uint32_t tile = 16;           // passes wider than 64 are measured at its multiples
  uint32_t max_backlog = 64;    // most features that one draft injects
  uint32_t max_context = 8192;  // most committed positions that leave room for a pass of max_width
  double budget_s = 90;         // seconds in all; the repeated pass of one row and one draft may exceed it
};

/// Throws Error(bad_input) naming the field: block of at least 2, widths of 1 to 65,536, a tile of 1 to 1,024, a
/// backlog of 1 to 65,536, contexts of at least 16, a positive budget.
void validate(const CalibrationPlan& plan);

struct CalibrationProgress {
  uint32_t done = 0;   // passes
  uint32_t total = 0;  // current plan; falls when widths that cannot win are left out
  double seconds_left = 0;
};

/// The context at which every width is measured, and all contexts, ascending.
uint32_t reference_context(const CalibrationPlan& plan);
std::vector<uint32_t> calibration_contexts(const CalibrationPlan& plan);

/// Measures every width to 64, then tiles, at the reference context, a ladder of widths at the others, and drafts.
/// Widths that cannot win are left out: those beyond two measured widths in a row with T_draft + T_verify(W) > B *
/// T_verify(1). A coarse set of points is measured first, then the rest from narrow to wide; then the points whose
/// times scatter are repeated in turns, so that a drift of the device affects all widths alike. The table is usable
/// whenever the budget ends. Throws Error(cancelled) when the timer's stopped() returns true, and Error(bad_input) when
/// no usable time was measured for one row.
CostTable calibrate(PassTimer& timer, const CalibrationPlan& plan,
                    const std::function<void(const CalibrationProgress&)>& progress = {});

}  // namespace canopy
