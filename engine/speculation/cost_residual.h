#pragma once
// The ratio of the time that passes take now to the predicted time. Other programs, heat and drivers change it.

#include <array>
#include <cstddef>
#include <cstdint>

#include "engine/speculation/state_archive.h"

namespace canopy {

/// A running mean of observed / predicted time, within bounds. A single outlier does not count, two in a row do; times
/// that are zero, negative or NaN are ignored.
class RatioMean {
 public:
  static constexpr double bound = 8;  // the mean stays within 1 / bound ... bound

  /// Returns whether the observation was usable.
  bool add(double predicted_ms, double observed_ms);
  /// Lowers the weight of the observations so far, as later observations would.
  void fade(double factor);

  /// The mean, in which `otherwise` counts as one observation before the first; its weight fades like theirs.
  double value(double otherwise = 1) const { return (sum_ + prior_ * otherwise) / (weight_ + prior_); }
  double weight() const { return weight_; }

  void archive(StateArchive& archive) {
    for (double* value : {&sum_, &weight_, &prior_, &doubtful_}) archive.number(*value);
  }

 private:
  void take(double ratio);

  double sum_ = 0;
  double weight_ = 0;
  double prior_ = 1;
  double doubtful_ = 0;  // the last observation when it was far from the mean, else 0
};

/// The means of passes of 1 row, 2, 3-4, 5-8, 9-16 ... rows. A range that was not met lately follows the mean of all,
/// since most of what changes a device's speed changes all of it.
class WidthResiduals {
 public:
  bool observe(uint32_t width, double predicted_ms, double observed_ms);
  double factor(uint32_t width) const { return ranges_[range_of(width)].value(all_.value()); }
  /// Observations that the range of `width` still remembers.
  double weight(uint32_t width) const { return ranges_[range_of(width)].weight(); }

  void archive(StateArchive& archive) {
    for (RatioMean& range : ranges_) range.archive(archive);
    all_.archive(archive);
  }

 private:
  static constexpr size_t ranges = 17;
  static size_t range_of(uint32_t width);

  std::array<RatioMean, ranges> ranges_;
  RatioMean all_;
};

}  // namespace canopy
