#include "engine/speculation/acceptance_estimate.h"

#include <algorithm>
#include <cmath>

namespace canopy {
namespace {

// Drafts that are assumed to have kept their promise.
constexpr double assumed_drafts = 4;
// Beyond this the weights are divided out, long before they overflow.
constexpr double largest_weight = 1e100;

}  // namespace

void PromiseLines::fade(double factor) {
  weight_ /= factor;
  if (weight_ < largest_weight) return;
  for (Line& line : lines_) {
    line = {line.n / weight_, line.x / weight_, line.y / weight_, line.xx / weight_, line.xy / weight_};
  }
  weight_ = 1;
}

double PromiseLines::expected(size_t i, double promised) const {
  // A size that was seldom built takes the line of the nearest that was built often: its own would be the promise.
  if (!lines_.empty()) {
    i = std::min(i, lines_.size() - 1);
    while (i > 0 && 2 * lines_[i].n < lines_.front().n) --i;
  }
  const Line seen = lines_.empty() ? Line{} : lines_[i];
  const double n = seen.n / weight_;
  // The assumed drafts lie on y = x, half of them at 0 and half at twice the usual promise, which fixes the slope too.
  const double usual = n > 0 ? seen.x / seen.n : promised;
  const double total = n + assumed_drafts;
  const double mean_x = (seen.x / weight_ + assumed_drafts * usual) / total;
  const double mean_y = (seen.y / weight_ + assumed_drafts * usual) / total;
  const double square = 2 * assumed_drafts * usual * usual;
  const double variance = (seen.xx / weight_ + square) / total - mean_x * mean_x;
  const double covariance = (seen.xy / weight_ + square) / total - mean_x * mean_y;
  const double slope = variance > 1e-12 ? std::clamp(covariance / variance, 0.0, 2.0) : 1.0;
  return std::max(0.0, mean_y + slope * (promised - mean_x));
}

double PromiseLines::mean(size_t i) const {
  return i < lines_.size() && lines_[i].n > 0 ? lines_[i].y / lines_[i].n : 0;
}

void PromiseLines::archive(StateArchive& archive) {
  archive.size(lines_, most_sizes);
  for (Line& line : lines_) {
    for (double* value : {&line.n, &line.x, &line.y, &line.xx, &line.xy}) archive.number(*value);
  }
  archive.number(weight_);
}

void HindsightCurve::add(std::vector<Sum>& sums, size_t i, uint32_t accepted) {
  sums[i].accepted += accepted;
  sums[i].drafts += 1;
}

void HindsightCurve::learn(const DraftOutcome& outcome) {
  if (tree_.size() < outcome.built()) tree_.resize(outcome.built());
  for (uint32_t width = 1; width <= outcome.built(); ++width) add(tree_, width - 1, outcome.accepted(width));
  if (chain_.size() < outcome.depths() + 1) chain_.resize(outcome.depths() + 1);
  for (uint32_t length = 0; length <= outcome.depths(); ++length) add(chain_, length, outcome.chain_accepted(length));
}

std::vector<HindsightCurve::Point> HindsightCurve::points(const std::vector<Sum>& sums) {
  std::vector<Point> result;
  for (size_t i = 0; i < sums.size(); ++i) {
    const auto drafts = static_cast<double>(std::max<uint64_t>(1, sums[i].drafts));
    result.push_back({static_cast<uint32_t>(i + 1), 1 + sums[i].accepted / drafts, sums[i].drafts});
  }
  return result;
}

void PromiseRecord::learn(double raw, double calibrated, double accepted) {
  n_ += 1;
  raw_ += raw;
  calibrated_ += calibrated;
  accepted_ += accepted;
  raw_squares_ += (raw - accepted) * (raw - accepted);
  calibrated_squares_ += (calibrated - accepted) * (calibrated - accepted);
  cc_ += calibrated * calibrated;
  aa_ += accepted * accepted;
  ca_ += calibrated * accepted;
}

void PromiseRecord::archive(StateArchive& archive) {
  for (double* value : {&n_, &raw_, &calibrated_, &accepted_, &raw_squares_, &calibrated_squares_, &cc_, &aa_, &ca_}) {
    archive.number(*value);
  }
}

double PromiseRecord::raw_error() const {
  return n_ > 0 ? std::sqrt(raw_squares_ / n_) : 0;
}

double PromiseRecord::calibrated_error() const {
  return n_ > 0 ? std::sqrt(calibrated_squares_ / n_) : 0;
}

double PromiseRecord::correlation() const {
  if (n_ < 2) return 0;
  const double c = calibrated_ / n_, a = accepted_ / n_;
  const double spread = (cc_ / n_ - c * c) * (aa_ / n_ - a * a);
  return spread > 1e-18 ? (ca_ / n_ - c * a) / std::sqrt(spread) : 0;
}

}  // namespace canopy
