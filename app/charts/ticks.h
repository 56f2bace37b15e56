#pragma once
// Ticks of an axis, at three or four round numbers. Pure.

#include <string>
#include <vector>

namespace canopy::app {

/// The ticks of an axis that begins at 0.
struct Ticks {
  std::vector<double> at;           // 0, step, ...
  std::vector<std::string> labels;  // text of each
  double top = 1;                   // value at the end of the axis: a little above the highest one
};

/// Ticks up to `highest` in steps of 1, 2, 2.5, 4 or 5 times a power of ten; at most `lines`, not counting 0. whole:
/// only at whole numbers.
Ticks ticks_to(double highest, int lines = 3, bool whole = true);

/// Ticks at the given values, written as whole numbers; the axis ends at the last one.
Ticks ticks_at(std::vector<double> at);

/// Ticks of the width axis: 1, then multiples of the kernels' tile, with a step that gives at most eight.
Ticks width_ticks(double end);

}  // namespace canopy::app
