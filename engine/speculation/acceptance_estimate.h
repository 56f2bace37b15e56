#pragma once
// Recent numbers of accepted tokens by size of tree and chain, relative to what the drafter's probabilities promised.

#include <cstdint>
#include <span>
#include <vector>

#include "engine/speculation/acceptance_ledger.h"
#include "engine/speculation/state_archive.h"

namespace canopy {

/// For each size a straight line through (promised, accepted), older drafts fading, with a few made-up drafts that kept
/// their promise exactly. A drafter that is too sure of itself gets a flatter or lower line; one whose promise says
/// nothing gets a level line, the mean.
class PromiseLines {
 public:
  /// One more draft: promised[i] tokens were promised for size i, accepted(i) came. Sizes beyond the span learn
  /// nothing.
  template <class Accepted>
  void learn(std::span<const double> promised, Accepted&& accepted) {
    if (lines_.size() < promised.size()) lines_.resize(promised.size());
    for (size_t i = 0; i < promised.size(); ++i) lines_[i].add(promised[i], accepted(i), weight_);
  }

  /// All drafts so far count `factor` of what they did; 0 < factor <= 1.
  void fade(double factor);

  /// Accepted tokens to expect of size i where `promised` are promised; not negative.
  double expected(size_t i, double promised) const;

  /// Mean of what size i accepted; 0 where nothing is known.
  double mean(size_t i) const;
  /// Drafts that size i has seen, faded.
  double drafts(size_t i) const { return i < lines_.size() ? lines_[i].n / weight_ : 0; }
  size_t sizes() const { return lines_.size(); }

  void archive(StateArchive& archive);

 private:
  static constexpr uint32_t most_sizes = 1u << 16;

  struct Line {
    double n = 0, x = 0, y = 0, xx = 0, xy = 0;  // sums, each draft by its weight

    void add(double promised, double accepted, double weight) {
      n += weight;
      x += weight * promised;
      y += weight * accepted;
      xx += weight * promised * promised;
      xy += weight * promised * accepted;
    }
  };

  std::vector<Line> lines_;
  double weight_ = 1;  // of the next draft: instead of fading all, later ones count more
};

/// Sums over the drafts of a reply: the best width in hindsight, for the application's oracle curve.
class HindsightCurve {
 public:
  void clear() { *this = {}; }
  void learn(const DraftOutcome& outcome);

  struct Point {
    uint32_t width = 0;
    double emitted = 0;  // mean a round, the bonus included
    uint64_t drafts = 0;
  };
  /// Of the tree: widths 1 ... the widest that was built; each over the drafts that were built that wide.
  std::vector<Point> tree() const { return points(tree_); }
  /// Of the chain: width L + 1 for L tokens.
  std::vector<Point> chain() const { return points(chain_); }

 private:
  struct Sum {
    double accepted = 0;
    uint64_t drafts = 0;
  };
  static std::vector<Point> points(const std::vector<Sum>& sums);
  static void add(std::vector<Sum>& sums, size_t i, uint32_t accepted);

  std::vector<Sum> tree_;   // [width - 1]
  std::vector<Sum> chain_;  // [length]
};

/// The quality of the promises; each draft is judged before anything is learnt from it.
class PromiseRecord {
 public:
  /// The tree of `width` accepted `accepted`; it had promised `raw` by the drafter's own q and `calibrated` as ordered.
  void learn(double raw, double calibrated, double accepted);

  uint64_t drafts() const { return static_cast<uint64_t>(n_); }
  /// Root mean square of promised - accepted, in tokens; 0 before the first draft.
  double raw_error() const;
  double calibrated_error() const;
  /// Mean of promised - accepted.
  double raw_bias() const { return n_ > 0 ? (raw_ - accepted_) / n_ : 0; }
  double calibrated_bias() const { return n_ > 0 ? (calibrated_ - accepted_) / n_ : 0; }
  void archive(StateArchive& archive);

  /// Pearson's correlation of the calibrated promise with the accepted length (figure 9 of the BASTION paper); 0 while
  /// either has not varied.
  double correlation() const;

 private:
  double n_ = 0, raw_ = 0, calibrated_ = 0, accepted_ = 0;
  double raw_squares_ = 0, calibrated_squares_ = 0;  // of the errors
  double cc_ = 0, aa_ = 0, ca_ = 0;                  // products of calibrated and accepted
};

}  // namespace canopy
