#include "engine/comparison/statistics.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace canopy {
namespace {

bool is_speed(double value) {
  return std::isfinite(value) && value > 0;
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
  return has_error() && std::abs(value - 1) > 2 * error;
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

Ratio quotient(const Ratio& a, const Ratio& b) {
  if (!a.known() || !b.known() || !is_speed(b.value)) return {};
  Ratio result{a.value / b.value, 0, std::min(a.pairs, b.pairs)};
  if (result.has_error()) result.error = result.value * std::hypot(a.error / a.value, b.error / b.value);
  return result;
}

}  // namespace canopy
