#include "engine/compute/best_seconds.h"

#include <algorithm>

namespace canopy {
namespace {

constexpr double kEnoughSeconds = 0.25;  // of runs, where one run is longer than wanted
constexpr int kRuns = 5;

}  // namespace

double best_seconds(const std::function<double(uint32_t times)>& run, uint32_t most_times) {
  uint32_t times = 1;
  while (true) {
    const double seconds = run(times);
    if (seconds >= kWantedRunSeconds / 2 || times == most_times) break;
    // At most sixteenfold: the first run includes what a device does once.
    const double factor = std::clamp(kWantedRunSeconds / std::max(seconds, 1e-6), 1.5, 16.0);
    times = static_cast<uint32_t>(std::min<double>(most_times, std::max(times + 1.0, times * factor)));
  }
  double best = run(times);
  double spent = best;
  for (int i = 1; i < kRuns && spent < kEnoughSeconds; ++i) {
    const double seconds = run(times);
    best = std::min(best, seconds);
    spent += seconds;
  }
  return best / times;
}

}  // namespace canopy
