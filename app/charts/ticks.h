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

/// Ticks of an axis of drafted nodes: 0, then as width_ticks().
Ticks budget_ticks(double end);

/// Which labels of an axis to write, so that no two touch: every first, second, ... of them, the first always. places:
/// of the ticks along the axis; lengths: of their labels along it; gap: least distance between two labels.
std::vector<bool> labels_that_fit(const std::vector<float>& places, const std::vector<float>& lengths, float gap);

}  // namespace canopy::app
