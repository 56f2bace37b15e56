#pragma once
// Where the lines of an axis go: at round numbers, three or four of them. Pure.

#include <string>
#include <vector>

namespace canopy::app {

/// An axis from 0 that holds a value.
struct Ticks {
  std::vector<double> at;           // 0, step, ...
  std::vector<std::string> labels;  // likewise
  double top = 1;                   // where the axis ends: a little above the highest value
};

/// Ticks at 1, 2, 2.5, 4 or 5 times a power of ten; `lines` at most, 0 left out. whole: never between two whole
/// numbers.
Ticks ticks_to(double highest, int lines = 3, bool whole = true);

/// Ticks at the given places, written as whole numbers; the last is the end.
Ticks ticks_at(std::vector<double> at);

/// Of the width axis: 1, then every `step` of the kernels' tile that leaves at most eight.
Ticks width_ticks(double end);

}  // namespace canopy::app
