#include "engine/speculation/cost_residual.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace canopy {
namespace {

constexpr double memory = 0.9;         // of an observation, with each that follows: some ten count
constexpr double memory_range = 0.97;  // of a range, with each observation in another
constexpr double least_prior = 0.1;    // so that a range forgotten long ago follows the others
constexpr double usual = 1.6;          // an observation within this factor of the mean is no outlier

}  // namespace

bool RatioMean::add(double predicted_ms, double observed_ms) {
  if (!std::isfinite(predicted_ms) || !std::isfinite(observed_ms) || predicted_ms <= 0 || observed_ms <= 0)
    return false;
  const double ratio = std::clamp(observed_ms / predicted_ms, 1 / bound, bound);
  const double mean = value();
  const bool near = ratio < mean * usual && ratio > mean / usual;
  const bool confirmed = doubtful_ != 0 && (ratio > mean) == (doubtful_ > mean);
  if (!near && !confirmed) {
    doubtful_ = ratio;
    return true;
  }
  // Two in a row on the same side: the device has changed, and what was seen before says little of it.
  if (!near) {
    fade(0.5);
    take(doubtful_);
  }
  doubtful_ = 0;
  take(ratio);
  return true;
}

void RatioMean::take(double ratio) {
  sum_ = sum_ * memory + ratio;
  weight_ = weight_ * memory + 1;
  prior_ = std::max(least_prior, prior_ * memory);
}

void RatioMean::fade(double factor) {
  sum_ *= factor;
  weight_ *= factor;
}

size_t WidthResiduals::range_of(uint32_t width) {
  return std::min<size_t>(std::bit_width(std::max(width, 1u) - 1), ranges - 1);
}

bool WidthResiduals::observe(uint32_t width, double predicted_ms, double observed_ms) {
  const size_t range = range_of(width);
  if (!ranges_[range].add(predicted_ms, observed_ms)) return false;
  all_.add(predicted_ms, observed_ms);
  for (size_t i = 0; i < ranges_.size(); ++i) {
    if (i != range) ranges_[i].fade(memory_range);
  }
  return true;
}

}  // namespace canopy
