#pragma once
// Estimates the remaining time of some work from its recent speed.

#include <cstdint>
#include <deque>
#include <optional>

namespace canopy {

class RemainingTime {
 public:
  /// `done` of `total` at a time, in seconds of a clock that does not run backwards. The time that is left at the pace
  /// of the last seconds; nothing in the first half second, or while nothing moves.
  std::optional<double> update(double seconds, uint64_t done, uint64_t total);

 private:
  struct Sample {
    double seconds;
    uint64_t done;
  };
  std::deque<Sample> samples_;  // of the last seconds, oldest first
};

}  // namespace canopy
