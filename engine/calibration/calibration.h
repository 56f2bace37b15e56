#pragma once
// Measures what passes cost on this device with this model, within a time that a user waits for (design.md, section 3).

#include <cstdint>
#include <functional>
#include <vector>

#include "engine/speculation/cost_table.h"

namespace canopy {

/// Runs single passes and says what they took.
class PassTimer {
 public:
  virtual ~PassTimer() = default;

  /// Milliseconds of one pass of the target as PassCost::verify_ms() counts them. What the cache holds at these
  /// positions does not matter. The first pass of a width may take longer, it is not relied on.
  virtual double verify_ms(uint32_t width, uint32_t context) = 0;
  /// Milliseconds of one pass of the drafter behind an injection of `backlog` features.
  virtual double draft_ms(uint32_t backlog, uint32_t context) = 0;

  /// Looked at before every pass; true ends the calibration.
  virtual bool stopped() const { return false; }
  /// Seconds of the clock that the budget is kept by.
  virtual double now();
};

struct CalibrationPlan {
  uint32_t block = 16;          // rows of the drafter's pass, B
  uint32_t max_width = 512;     // rows of the widest pass to measure
  uint32_t tile = 16;           // passes wider than 64 are measured at its multiples
  uint32_t max_backlog = 64;    // features that are injected at once
  uint32_t max_context = 8192;  // committed positions that a pass of max_width still fits behind
  double budget_s = 90;         // seconds in all; the repeat of one row and one draft may go beyond
};

/// Throws Error(bad_input) naming the field: block of at least 2, widths of 1 to 65,536, a tile of 1 to 1,024, a
/// backlog of 1 to 65,536, contexts of at least 16, a positive budget.
void validate(const CalibrationPlan& plan);

struct CalibrationProgress {
  uint32_t done = 0;   // passes
  uint32_t total = 0;  // as planned by now; widths that cannot win drop out
  double seconds_left = 0;
};

/// The context at which every width is measured, and all contexts, ascending.
uint32_t reference_context(const CalibrationPlan& plan);
std::vector<uint32_t> calibration_contexts(const CalibrationPlan& plan);

/// Measures every width to 64, then tiles, at the reference context, a ladder of widths at the others, and drafts.
/// Widths that cannot win are left out: T_draft + T_verify(W) > B * T_verify(1), met by two measured widths in a row.
/// The outline comes first, then narrow passes before wide ones, then repeats in turns (so that a drift of the device
/// touches all widths alike) where times scatter: whenever the budget ends, what was measured is a usable table.
/// Throws Error(cancelled) when the timer says so, and Error(bad_input) when it gives no usable time for one row.
CostTable calibrate(PassTimer& timer, const CalibrationPlan& plan,
                    const std::function<void(const CalibrationProgress&)>& progress = {});

}  // namespace canopy
