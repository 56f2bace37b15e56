#include "engine/base/remaining_time.h"

namespace canopy {
namespace {

// Seconds: a longer window reacts late when the speed changes, a shorter one makes the estimate jump.
constexpr double kWindow = 5;
constexpr double kLeast = 0.5;    // seconds before the first estimate, which would be too noisy earlier
constexpr double kSpacing = 0.1;  // between samples that are kept

}  // namespace

std::optional<double> RemainingTime::update(double seconds, uint64_t done, uint64_t total) {
  if (samples_.empty() || seconds - samples_.back().seconds >= kSpacing) samples_.push_back({seconds, done});
  // One sample from before the window stays: the pace is taken over at least the whole window.
  while (samples_.size() > 2 && samples_[1].seconds <= seconds - kWindow) samples_.pop_front();
  const Sample& first = samples_.front();
  if (seconds - first.seconds < kLeast || done <= first.done || done > total) return std::nullopt;
  return static_cast<double>(total - done) * (seconds - first.seconds) / static_cast<double>(done - first.done);
}

}  // namespace canopy
