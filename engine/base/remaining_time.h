#pragma once
// Estimate of the remaining time of an operation from its recent speed.

#include <cstdint>
#include <deque>
#include <optional>

namespace canopy {

class RemainingTime {
 public:
  /// Takes the progress `done` of `total` at the time `seconds` of a monotonic clock. Returns the seconds left at the
  /// speed of the last few seconds; nothing in the first half second or without progress.
  std::optional<double> update(double seconds, uint64_t done, uint64_t total);

 private:
  struct Sample {
    double seconds;
    uint64_t done;
  };
  std::deque<Sample> samples_;  // of the last seconds, oldest first
};

}  // namespace canopy
