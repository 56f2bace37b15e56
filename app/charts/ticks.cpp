#include "app/charts/ticks.h"

#include <algorithm>
#include <cmath>

#include "app/base/figures.h"

namespace canopy::app {
namespace {

constexpr double kHeadroom = 1.08;
constexpr double kTile = 16;
constexpr int kWidthTicks = 8;

double round_step(double least) {
  const double power = std::pow(10, std::floor(std::log10(least)));
  for (const double factor : {1.0, 2.0, 2.5, 4.0, 5.0})
    if (factor * power >= least * (1 - 1e-9)) return factor * power;
  return 10 * power;
}

int digits_of(double step) {
  for (int digits = 0; digits < 4; ++digits) {
    const double scaled = step * std::pow(10, digits);
    if (std::abs(scaled - std::round(scaled)) < 1e-6 * scaled) return digits;
  }
  return 4;
}

}  // namespace

Ticks ticks_to(double highest, int lines, bool whole_numbers) {
  Ticks ticks;
  if (!std::isfinite(highest) || highest <= 0) highest = 1;
  double step = round_step(highest / std::max(1, lines));
  if (whole_numbers) step = std::max(1.0, std::ceil(step));
  ticks.top = highest * kHeadroom;
  const int digits = digits_of(step);
  for (int i = 0; i * step <= ticks.top; ++i) {
    ticks.at.push_back(i * step);
    ticks.labels.push_back(digits == 0 ? whole(i * step) : fixed(i * step, digits));
  }
  // With the 0 alone, nobody could tell how high the bars are.
  if (ticks.at.size() == 1) {
    ticks.at.push_back(step);
    ticks.labels.push_back(digits == 0 ? whole(step) : fixed(step, digits));
    ticks.top = step;
  }
  return ticks;
}

Ticks ticks_at(std::vector<double> at) {
  Ticks ticks;
  ticks.at = std::move(at);
  for (const double each : ticks.at) ticks.labels.push_back(whole(each));
  ticks.top = ticks.at.empty() ? 1 : ticks.at.back();
  return ticks;
}

Ticks budget_ticks(double end) {
  Ticks ticks = width_ticks(end);
  ticks.at.front() = 0;
  ticks.labels.front() = "0";
  return ticks;
}

std::vector<bool> labels_that_fit(const std::vector<float>& places, const std::vector<float>& lengths, float gap) {
  const size_t count = std::min(places.size(), lengths.size());
  for (size_t step = 1; step <= count; ++step) {
    bool fit = true;
    for (size_t i = step; i < count && fit; i += step)
      fit = std::abs(places[i] - places[i - step]) >= (lengths[i] + lengths[i - step]) / 2 + gap;
    if (!fit) continue;
    std::vector<bool> shown(count, false);
    for (size_t i = 0; i < count; i += step) shown[i] = true;
    return shown;
  }
  return std::vector<bool>(count, false);
}

Ticks width_ticks(double end) {
  double step = kTile;
  while (end / step > kWidthTicks) step *= 2;
  std::vector<double> at = {1};
  for (int i = 1; i * step <= end; ++i) at.push_back(i * step);
  Ticks ticks = ticks_at(std::move(at));
  ticks.top = end;
  return ticks;
}

}  // namespace canopy::app
