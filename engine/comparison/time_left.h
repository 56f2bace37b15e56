#pragma once
// The remaining time of a comparison, from what its columns took so far.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/comparison/run_order.h"

namespace canopy {

class TimeLeft {
 public:
  explicit TimeLeft(uint32_t contestants) : seconds_(contestants), runs_(contestants) {}

  /// A run took so long, with all that was done for it.
  void add(uint32_t contestant, double seconds);

  /// Seconds for these runs: each as long as its column's took on average, or where that has none, as all did. Nothing
  /// before the first run.
  std::optional<double> estimate(std::span<const RunKey> left) const;

 private:
  std::vector<double> seconds_;  // in sum, by contestant
  std::vector<uint64_t> runs_;
};

}  // namespace canopy
