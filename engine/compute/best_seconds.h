#pragma once
// How long a piece of work takes at best, for measurements of what a device reaches.

#include <cstdint>
#include <functional>

namespace canopy {

/// A run that is measured should take about so long.
inline constexpr double kWantedRunSeconds = 0.03;

/// Seconds of the work done once: the least of several runs of so many repetitions that a run is long enough to tell,
/// at most `most_times`. `run` does the work that often and returns the seconds that took.
double best_seconds(const std::function<double(uint32_t times)>& run, uint32_t most_times);

}  // namespace canopy
