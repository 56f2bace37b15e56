#include "engine/comparison/time_left.h"

#include <numeric>

namespace canopy {

void TimeLeft::add(uint32_t contestant, double seconds) {
  seconds_.at(contestant) += seconds;
  ++runs_.at(contestant);
}

std::optional<double> TimeLeft::estimate(std::span<const RunKey> left) const {
  const auto runs = std::accumulate(runs_.begin(), runs_.end(), uint64_t{0});
  if (runs == 0) return std::nullopt;
  const double mean = std::accumulate(seconds_.begin(), seconds_.end(), 0.0) / static_cast<double>(runs);
  double total = 0;
  for (const RunKey& run : left) {
    const uint64_t own = runs_.at(run.contestant);
    total += own > 0 ? seconds_[run.contestant] / static_cast<double>(own) : mean;
  }
  return total;
}

}  // namespace canopy
