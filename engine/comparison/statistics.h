#pragma once
// Statistics of measurements that were repeated in turns.

#include <cstdint>
#include <span>
#include <utility>

namespace canopy {

/// Mean and sample standard deviation of values that were measured alike.
struct Spread {
  double mean = 0;
  double sd = 0;  // 0 for fewer than two values
  uint32_t count = 0;

  /// Standard error of the mean; 0 for fewer than two values, where it is not known.
  double error() const;
};

Spread spread_of(std::span<const double> values);

/// How many times as large one quantity is as another, from pairs that were measured one soon after the other. What
/// slows both of a pair alike (a clock that drops, another program) leaves their ratio as it is.
struct Ratio {
  double value = 0;    // 0: not known
  double error = 0;    // standard error; 0 for fewer than two pairs, where it is not known
  uint32_t pairs = 0;  // that it was taken of

  bool known() const { return pairs > 0; }
  bool has_error() const { return pairs > 1; }
  /// Whether it differs from 1 by more than chance explains in 19 of 20 cases (Student, "The Probable Error of a Mean",
  /// 1908): by 12.7 times its error of two pairs, 4.3 of three, twice of many. False where no error is known.
  bool differs_from_one() const;
};

/// The geometric mean of first / second, so that the ratio the other way round is 1 / value. Its error is that of the
/// mean logarithm (sample standard deviation / sqrt(pairs)), times the value. Pairs with a part that is not positive
/// and finite are left out.
Ratio ratio_of_pairs(std::span<const std::pair<double, double>> pairs);

}  // namespace canopy
