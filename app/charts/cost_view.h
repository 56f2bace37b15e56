#pragma once
// The measured cost of passes beside the roofline that was fitted to them, by context. Pure.

#include <cstdint>
#include <vector>

#include "engine/client/cost_snapshot.h"

namespace canopy::app {

/// What was measured behind one number of committed positions.
struct ContextCosts {
  uint32_t context = 0;
  std::vector<double> width;                  // ascending
  std::vector<double> ms;                     // measured
  std::vector<double> residual;               // measured over fitted, less 1
  std::vector<double> curve_width, curve_ms;  // the fitted roofline over the same span, for a curve
};

struct CostView {
  std::vector<ContextCosts> contexts;  // ascending
  uint32_t widest = 0;
  double slowest_ms = 0;
  double fit_error = 0;    // mean distance of measured from fitted, as a share
  double worst_error = 0;  // the largest of them
  uint64_t passes = 0;
};

CostView cost_view(const CostSnapshot& costs);

}  // namespace canopy::app
