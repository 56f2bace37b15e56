#pragma once
// The measured costs of passes and the roofline fitted to them, for each context. Pure.

#include <cstdint>
#include <vector>

#include "engine/client/cost_snapshot.h"

namespace canopy::app {

/// The costs of passes after a certain number of committed positions.
struct ContextCosts {
  uint32_t context = 0;
  std::vector<double> width;                  // ascending
  std::vector<double> ms;                     // time of the pass
  std::vector<double> residual;               // measured / fitted - 1
  std::vector<double> curve_width, curve_ms;  // points of the fitted roofline over the same widths
};

struct CostView {
  std::vector<ContextCosts> contexts;  // ascending
  uint32_t widest = 0;
  double slowest_ms = 0;
  double fit_error = 0;    // mean of |residual| over all points
  double worst_error = 0;  // the largest |residual|
  uint64_t passes = 0;
};

CostView cost_view(const CostSnapshot& costs);

}  // namespace canopy::app
