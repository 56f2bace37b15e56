#pragma once
// The measured costs of passes for a front end, with the roofline's predictions beside them.

#include <cstdint>
#include <vector>

#include "engine/speculation/cost_table.h"
#include "engine/speculation/roofline.h"

namespace canopy {

/// A measured pass of the target with its predicted times, in milliseconds.
struct MeasuredPass {
  uint32_t width = 0;    // rows
  uint32_t context = 0;  // committed positions before it
  double ms = 0;
  double bare_ms = 0;    // by the roofline of device and model, uncalibrated
  double fitted_ms = 0;  // by the roofline fitted to these very passes

  /// Relative error of the fit: positive where the pass took longer than predicted.
  double residual() const { return fitted_ms > 0 ? ms / fitted_ms - 1 : 0; }
};

/// Immutable once published.
struct CostSnapshot {
  CostTable table;                   // answers for any width and context, between its points and beyond
  Roofline fitted;                   // its bare form is fitted.bare()
  std::vector<MeasuredPass> passes;  // by context, then width
  double fit_error = 0;              // mean of |residual()| over the passes
};

/// Fits the roofline to the table, which must hold at least one pass. Throws the errors of Roofline.
CostSnapshot cost_snapshot(const CostTable& table, const Roofline& bare);

}  // namespace canopy
