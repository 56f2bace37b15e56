#pragma once
// What becomes of drafts, and what that teaches: scores drafts against the text that followed, estimates the accepted
// tokens of each width, and calibrates the drafter's probabilities by depth.

#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "engine/speculation/ddtree.h"
#include "engine/speculation/draft_source.h"
#include "engine/speculation/state_archive.h"

namespace canopy {

// Scores drafts against the text that followed (full information). The text is the same for every width, so the tokens
// after a root show how many tokens each width of the tree, and the chain, would have accepted.

// Drafts from the text are as reliable as what was found again is long: matches of similar lengths are judged together.
// Behind a drafted token the match is as much longer. Matches in earlier replies are judged apart, and what was
// recycled by depth.

inline constexpr uint32_t kMatchGroups = 7, kRecycledGroups = 4, kFreeGroups = 2 * kMatchGroups + kRecycledGroups;
/// Of a match of 1, 2, 3, 4-5, 6-8, 9-16 or more tokens.
uint32_t match_group(uint32_t match);
/// Of the children of a node of a draft: of a match behind so many drafted tokens, or of what was recycled.
uint32_t group_of(const FreeDraft& draft, uint32_t depth);

/// What each group is assumed to be like, until that is known of a text.
extern const std::array<DepthCalibration, kFreeGroups> kAssumedFree;

/// The calibration of a draft by the depth of a parent; the last is that of all deeper ones.
using FreeCalibration = std::array<DepthCalibration, 17>;
FreeCalibration calibration_of(std::span<const DepthCalibration> groups, const FreeDraft& draft);

/// A token that was suggested where the true path stood, and whether it came.
struct FoundOutcome {
  uint32_t group = 0;
  double log_q = 0;  // as it was suggested, given the path
  bool came = false;
};

/// How much of a draft of `depths` tokens the following text confirmed.
struct DraftOutcome {
  static constexpr uint32_t no_rank = std::numeric_limits<uint32_t>::max();

  // Of the tree as it was built, before it was cut. `predicted` and `raw` are cumulated over the best-first order:
  // entry W - 1 is the number of tokens that a tree of width W was expected to have accepted.
  std::vector<double> predicted;  // [built] by the scores that ordered the tree
  std::vector<double> raw;        // [built] by the drafter's own log q
  // [depths] By the most probable token of each depth: entry L - 1 for a chain of L tokens. In a draft that is made
  // token by token these are the depths of the likeliest path alone.
  std::vector<double> chain_predicted;

  std::vector<uint32_t> reach;  // reach[j - 1]: the narrowest width whose tree accepted j tokens; ascending
  uint32_t chain = 0;           // tokens that a chain of all depths accepted
  // [known] of the true token among the candidates of its depth, or no_rank; of all depths, or of those that a draft
  // made token by token has behind the true path
  std::vector<uint32_t> ranks;

  // [known, listed] log q of the most probable candidates there
  std::vector<float> log_q;
  uint32_t listed = 0;
  bool is_by_token = false;  // the draft was made token by token

  std::vector<FoundOutcome> found;  // of free drafts; their `depths` are 0, as they have no marginals

  uint32_t built() const { return static_cast<uint32_t>(predicted.size()); }
  uint32_t depths() const { return static_cast<uint32_t>(chain_predicted.size()); }
  /// Tokens that the tree cut to `width` accepted; beyond built() a lower bound.
  uint32_t accepted(uint32_t width) const;
  uint32_t chain_accepted(uint32_t length) const { return chain < length ? chain : length; }
};

/// Keeps drafts until the text behind their root is known, then scores them.
class AcceptanceLedger {
 public:
  /// Candidates of a depth whose log q an outcome lists.
  static constexpr uint32_t listed_candidates = 8;

  /// A draft whose root is the last token of the text so far. `tree` is the best-first tree as far as it was built,
  /// `depths` what it was built from, beside what the text suggested, `calibration` what it was ordered by (empty for
  /// none). Throws Error(bad_input) when the drafter's nodes are deeper than `depths`, or for a wrong number of
  /// calibrations. `behind` is BlockDraft::behind of `depths`, which are the lists of a draft made token by token then.
  void add(const DraftTree& tree, std::span<const DepthCandidates> depths,
           std::span<const DepthCalibration> calibration, std::span<const uint32_t> behind = {});
  /// A tree of what the text suggested and of what was recycled, without the drafter's.
  void add(const DraftTree& tree, const FreeDraft& found, const FreeDraft& recycled);

  /// The text goes on with `tokens`. Calls settled(const DraftOutcome&) for each draft whose every depth is known now,
  /// oldest first. A draft whose first token was wrong is settled no earlier than the others: failures would otherwise
  /// be learnt sooner than successes.
  template <class Settled>
  void follow(std::span<const uint32_t> tokens, Settled&& settled) {
    for (const uint32_t token : tokens) {
      for (Pending& draft : pending_) draft.truth.push_back(token);
      while (!pending_.empty() && pending_.front().truth.size() >= pending_.front().horizon) {
        settle(pending_.front());
        settled(std::as_const(pending_.front().outcome));
        retire_oldest();
      }
    }
  }

  /// Forgets the drafts that wait, because the text ended or changed.
  void clear();
  size_t waiting() const { return pending_.size(); }
  /// The draft that was added last; its outcome is not known yet, its promises are. There must be one.
  const DraftOutcome& newest() const { return pending_.back().outcome; }

 private:
  struct Pending {
    DraftOutcome outcome;
    std::vector<TreeNode> nodes;
    std::vector<std::vector<uint32_t>> candidates;  // [lists][k] tokens
    std::vector<float> log_q;                       // [lists, listed]
    std::vector<uint32_t> behind;                   // of these lists; empty: one for each depth
    FreeDraft found, recycled;
    uint32_t horizon = 0;         // tokens behind the root that it takes to score all of it
    std::vector<uint32_t> truth;  // the text behind the root so far
  };

  Pending& add(const DraftTree& tree);
  static void settle(Pending& draft);
  void retire_oldest();

  std::vector<Pending> pending_;  // oldest first
  std::vector<Pending> spare_;    // keep their memory
};

// Recent numbers of accepted tokens by size of tree and chain, relative to what the drafter's probabilities promised.

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

// Calibration of the drafter's probabilities by depth, learnt while it drafts, so that path probabilities are honest:
// q~ = exp(min(0, a log q + b)), with one (a, b) for each depth.

/// One point of the reliability plot: candidates that the drafter gave about the same probability.
struct ReliabilityBin {
  double predicted = 0;   // mean q, as the drafter said
  double calibrated = 0;  // mean calibrated q
  double observed = 0;    // share that the target agreed with
  double count = 0;       // candidates, older ones counting less
};

/// The candidates of a depth count where the true path reached their parent in the tree. They are gathered in bins of
/// q, older ones fading; each bin starts with a few assumed candidates that agree with the drafter, so that few samples
/// change little. (a, b) is the most likely line through the bins: a convex problem in two unknowns. What the text
/// suggests is calibrated likewise, with groups of matches in the place of depths.
class DepthCalibrator {
 public:
  /// depths: B - 1 of the drafter.
  explicit DepthCalibrator(uint32_t depths);
  /// prior: what each depth or group is assumed to be like before anything is known of it.
  explicit DepthCalibrator(std::span<const DepthCalibration> prior);

  void learn(const DraftOutcome& outcome);
  /// Candidates of any groups.
  void learn(std::span<const FoundOutcome> found);

  /// One entry a depth, as TreeBuilder::begin() takes it; the first `depths` of them.
  std::span<const DepthCalibration> calibration(uint32_t depths) const { return std::span(calibration_).first(depths); }

  /// Bins that hold something, ascending q. depth: 1 ...; 0 for all depths together.
  std::vector<ReliabilityBin> reliability(uint32_t depth) const;

  /// Drafts learnt from.
  uint64_t drafts() const { return drafts_; }

  /// Throws Error(bad_input) for one of other depths.
  void archive(StateArchive& archive);

 private:
  struct Bin {
    double count = 0;
    double hits = 0;
    double log_q = 0;  // sum
    double q = 0;      // sum
  };
  static constexpr uint32_t bins = 19;
  using Bins = std::array<Bin, bins>;

  static uint32_t bin_of(double q);
  static void fade(Bins& seen);
  static void count(Bins& seen, double log_q, bool came);
  static DepthCalibration fit(const Bins& seen, const DepthCalibration& prior, const DepthCalibration& before);
  void fit_now_and_then();

  std::vector<Bins> seen_;  // [depths]
  std::vector<DepthCalibration> prior_, calibration_;
  uint64_t drafts_ = 0;
};

}  // namespace canopy
