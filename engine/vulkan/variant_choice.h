#pragma once
// The choice among variants of a kernel that compute the same bits, by timing them: arithmetic on times, without a
// device.

#include <cstddef>
#include <string>
#include <vector>

namespace canopy::vk {

/// What one run took: by the device's clock, and by the host's around it.
struct TimedRun {
  double device_us = 0;
  double host_us = 0;
};

/// Runs variants, numbered from 0, and returns what they take.
class VariantTimer {
 public:
  virtual ~VariantTimer() = default;

  /// Compiles a variant and runs it once. False if it cannot be used, which rules it out.
  virtual bool prepare(size_t variant) = 0;
  virtual TimedRun run(size_t variant) = 0;
  /// Asked before each run and each preparation: whether the time for the choice is over, or the user wants no more.
  virtual bool over() = 0;
};

struct VariantPlan {
  int rounds = 8;         // in each of them every variant runs once, forth and back, so that a drift affects all alike
  double clearly = 0.97;  // a variant other than the first is chosen if it takes at most this share of the first's time
  double hopeless = 1.5;  // one that takes so many times the best's time in two rounds is not run again
};

struct VariantChoice {
  size_t chosen = 0;
  bool complete = false;           // all variants were measured; otherwise the best of those that were is chosen
  std::vector<double> typical_us;  // median of each; 0 where it was not measured
  std::string problem;             // why nothing could be measured, as a clause; empty if all is well
};

/// Chooses among `count` > 0 variants, of which the first is the one that is taken without a measurement. The chosen
/// one never has a larger median than the first. A time of 0, or one beyond what the host waited, is a clock that
/// cannot be trusted: nothing is chosen by it.
VariantChoice choose_variant(VariantTimer& timer, size_t count, const VariantPlan& plan = {});

}  // namespace canopy::vk
