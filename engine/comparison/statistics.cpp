#include "engine/comparison/statistics.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <vector>

namespace canopy {
namespace {

bool is_speed(double value) {
  return std::isfinite(value) && value > 0;
}

/// The 97.5 % quantile of Student's distribution for the mean of so many values, two at least.
double errors_of_chance(uint32_t values) {
  constexpr double quantiles[] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
                                  2.201,  2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093};
  return values - 2 < std::size(quantiles) ? quantiles[values - 2] : 2.09;
}

}  // namespace

double Spread::error() const {
  return count < 2 ? 0 : sd / std::sqrt(static_cast<double>(count));
}

Spread spread_of(std::span<const double> values) {
  Spread spread;
  spread.count = static_cast<uint32_t>(values.size());
  if (values.empty()) return spread;
  const auto count = static_cast<double>(values.size());
  for (const double value : values) spread.mean += value / count;
  if (values.size() == 1) return spread;
  double squares = 0;
  for (const double value : values) squares += (value - spread.mean) * (value - spread.mean);
  spread.sd = std::sqrt(squares / (count - 1));
  return spread;
}

bool Ratio::differs_from_one() const {
  return has_error() && std::abs(value - 1) > errors_of_chance(pairs) * error;
}

Ratio ratio_of_pairs(std::span<const std::pair<double, double>> pairs) {
  std::vector<double> logarithms;
  for (const auto& [first, second] : pairs) {
    if (is_speed(first) && is_speed(second)) logarithms.push_back(std::log(first) - std::log(second));
  }
  if (logarithms.empty()) return {};
  const Spread spread = spread_of(logarithms);
  const double value = std::exp(spread.mean);
  return {value, value * spread.error(), spread.count};
}

}  // namespace canopy
