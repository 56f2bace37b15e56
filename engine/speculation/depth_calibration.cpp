#include "engine/speculation/depth_calibration.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "engine/base/error.h"

namespace canopy {
namespace {

// Upper ends of the bins of q: dense where a small change of q changes a path's probability most.
constexpr double edges[] = {0.001, 0.003, 0.01, 0.03, 0.1,  0.2,  0.3,   0.4,   0.5, 0.6,
                            0.7,   0.8,   0.9,  0.95, 0.98, 0.99, 0.996, 0.999, 1.01};

// Assumed candidates in each bin that is not empty, which hit as often as the drafter predicted, and a quadratic term
// that pulls (a, b) to (1, 0) where the bins alone do not decide. Empty bins get no assumed candidates: they would hold
// the line of a drafter that never predicts such probabilities.
constexpr double assumed_candidates = 4;
constexpr double pull = 1;
// Factor on a sample's weight for every later draft: half is left after 700 drafts.
constexpr double fading = 0.999;
// Keeps q~ below 1, as log(1 - q~) is needed.
constexpr double largest_log = -1e-4;
// A steeper line would order the candidates of a depth by noise.
constexpr double largest_scale = 4;

// One bin: `hits` of `count` candidates with log q = `x` were right.
struct Evidence {
  double x = 0;
  double count = 0;
  double hits = 0;
};

/// Minus the log-likelihood of q~ = exp(a x + b), infinite where that is no probability, and the pull. Convex in (a,
/// b).
double cost(std::span<const Evidence> points, double a, double b) {
  double sum = pull / 2 * ((a - 1) * (a - 1) + b * b);
  for (const Evidence& p : points) {
    const double z = a * p.x + b;
    if (z >= 0) return INFINITY;
    sum -= p.hits * z + (p.count - p.hits) * std::log(-std::expm1(z));
  }
  return sum;
}

/// One damped Newton step on (a, b); false at the minimum.
bool improve(std::span<const Evidence> points, double& a, double& b) {
  double ga = pull * (a - 1), gb = pull * b, haa = pull, hab = 0, hbb = pull;
  for (const Evidence& p : points) {
    const double z = a * p.x + b;
    const double miss = -std::expm1(z);
    const double odds = std::exp(z) / miss;
    const double gradient = -p.hits + (p.count - p.hits) * odds;
    const double curvature = (p.count - p.hits) * odds / miss;
    ga += gradient * p.x;
    gb += gradient;
    haa += curvature * p.x * p.x;
    hab += curvature * p.x;
    hbb += curvature;
  }
  const double determinant = haa * hbb - hab * hab;  // at least pull squared
  const double da = (hab * gb - hbb * ga) / determinant;
  const double db = (hab * ga - haa * gb) / determinant;
  const double before = cost(points, a, b);
  for (double step = 1; step > 1e-6; step /= 2) {
    const double after = cost(points, a + step * da, b + step * db);
    if (after >= before) continue;
    a += step * da;
    b += step * db;
    return before - after > 1e-9 * (1 + std::abs(before));
  }
  return false;
}

/// The most likely b for a given scale, by ternary search: the cost is convex in b.
double best_shift(std::span<const Evidence> points, double scale) {
  double low = -20, high = 0;
  for (const Evidence& p : points) high = std::min(high, -scale * p.x);
  for (int i = 0; i < 60; ++i) {
    const double left = low + (high - low) / 3;
    const double right = high - (high - low) / 3;
    if (cost(points, scale, left) < cost(points, scale, right)) {
      high = right;
    } else {
      low = left;
    }
  }
  return low;
}

}  // namespace

DepthCalibrator::DepthCalibrator(uint32_t depths) : seen_(depths), calibration_(depths) {}

uint32_t DepthCalibrator::bin_of(double q) {
  static_assert(std::size(edges) == bins);
  return static_cast<uint32_t>(std::upper_bound(std::begin(edges), std::end(edges) - 1, q) - std::begin(edges));
}

void DepthCalibrator::learn(const DraftOutcome& outcome) {
  if (outcome.depths() > seen_.size()) {
    throw bad_input("A draft of " + std::to_string(outcome.depths()) + " depths cannot calibrate " +
                    std::to_string(seen_.size()) + ".");
  }
  ++drafts_;
  const auto reached = std::min<uint32_t>(static_cast<uint32_t>(outcome.reach.size()) + 1, outcome.depths());
  // Fitted often at first, when every draft changes much, later every few drafts.
  const bool refit = drafts_ <= 16 || drafts_ % 16 == 0 || (drafts_ < 128 && drafts_ % 4 == 0);
  for (uint32_t d = 0; d < reached; ++d) {
    for (Bin& bin : seen_[d]) bin = {bin.count * fading, bin.hits * fading, bin.log_q * fading, bin.q * fading};
    for (uint32_t rank = 0; rank < outcome.listed; ++rank) {
      const double log_q = std::min<double>(outcome.log_q[size_t{d} * outcome.listed + rank], largest_log);
      const double q = std::exp(log_q);
      Bin& bin = seen_[d][bin_of(q)];
      bin.count += 1;
      bin.hits += outcome.ranks[d] == rank ? 1 : 0;
      bin.log_q += log_q;
      bin.q += q;
    }
  }
  if (!refit) return;
  for (size_t d = 0; d < seen_.size(); ++d) calibration_[d] = fit(seen_[d], calibration_[d]);
}

void DepthCalibrator::archive(StateArchive& archive) {
  const size_t depths = seen_.size();
  archive.size(seen_, static_cast<uint32_t>(depths));
  if (seen_.size() != depths) {
    throw bad_input("A calibration of " + std::to_string(seen_.size()) + " depths was kept; " + std::to_string(depths) +
                    " are drafted.");
  }
  for (Bins& depth : seen_) {
    for (Bin& bin : depth) {
      for (double* value : {&bin.count, &bin.hits, &bin.log_q, &bin.q}) archive.number(*value);
    }
  }
  for (DepthCalibration& depth : calibration_) {
    archive.number(depth.scale);
    archive.number(depth.shift);
    if (depth.scale < 0) throw bad_input("A kept calibration has the scale " + std::to_string(depth.scale) + ".");
  }
  archive.large(drafts_);
}

DepthCalibration DepthCalibrator::fit(const Bins& seen, const DepthCalibration& before) {
  std::array<Evidence, bins> points;
  size_t count = 0;
  for (uint32_t i = 0; i < bins; ++i) {
    const Bin& bin = seen[i];
    if (bin.count == 0) continue;
    const double x = std::min(bin.log_q / bin.count, largest_log);
    points[count++] = {x, bin.count + assumed_candidates, bin.hits + assumed_candidates * std::exp(x)};
  }
  const auto used = std::span(points).first(count);
  // Starts at the last fit if its cost is finite, else at (1, 0), whose cost always is.
  double a = before.scale, b = before.shift;
  if (!std::isfinite(cost(used, a, b))) a = 1, b = 0;
  for (int i = 0; i < 30 && improve(used, a, b); ++i) {
  }
  if (a < 0 || a > largest_scale) {  // outside: a < 0 would reverse the order of the candidates
    a = std::clamp(a, 0.0, largest_scale);
    b = best_shift(used, a);
  }
  return {a, b};
}

std::vector<ReliabilityBin> DepthCalibrator::reliability(uint32_t depth) const {
  if (depth > seen_.size()) {
    throw bad_input("There is no depth " + std::to_string(depth) + " to be reliable at; depths go to " +
                    std::to_string(seen_.size()) + ".");
  }
  std::vector<ReliabilityBin> result;
  for (uint32_t i = 0; i < bins; ++i) {
    ReliabilityBin sum;
    for (size_t d = 0; d < seen_.size(); ++d) {
      if (depth != 0 && d + 1 != depth) continue;
      const Bin& bin = seen_[d][i];
      if (bin.count == 0) continue;
      const DepthCalibration& c = calibration_[d];
      sum.predicted += bin.q;
      sum.calibrated += bin.count * std::exp(std::min(0.0, c.scale * bin.log_q / bin.count + c.shift));
      sum.observed += bin.hits;
      sum.count += bin.count;
    }
    if (sum.count == 0) continue;
    result.push_back({sum.predicted / sum.count, sum.calibrated / sum.count, sum.observed / sum.count, sum.count});
  }
  return result;
}

}  // namespace canopy
