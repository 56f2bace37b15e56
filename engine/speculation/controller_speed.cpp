#include "engine/speculation/controller_speed.h"

#include <algorithm>
#include <cmath>

namespace canopy {
namespace {

constexpr double memory_tokens = 200;
constexpr double assumed_rounds = 4;    // rounds of speed-up 1, one token each ...
constexpr double assumed_variance = 4;  // ... that might as well have brought two more
constexpr double hope = 0.5;            // standard errors

}  // namespace

double fading_over(double distance, double memory) {
  return std::max(0.5, std::exp(-distance / memory));
}

void DraftingSpeed::learn(double tokens, double ar_rounds, double distance) {
  const double f = fading_over(distance, memory_tokens);
  n_ = f * n_ + 1;
  tokens_ = f * tokens_ + tokens;
  time_ = f * time_ + ar_rounds;
  tt_ = f * tt_ + tokens * tokens;
  tv_ = f * tv_ + tokens * ar_rounds;
  vv_ = f * vv_ + ar_rounds * ar_rounds;
}

double DraftingSpeed::mean() const {
  return (tokens_ + assumed_rounds) / (time_ + assumed_rounds);
}

double DraftingSpeed::hopeful() const {
  const double s = mean();
  const double spread = std::max(0.0, tt_ - 2 * s * tv_ + s * s * vv_) + assumed_rounds * assumed_variance;
  return s + hope * std::sqrt(spread) / (time_ + assumed_rounds);
}

}  // namespace canopy
