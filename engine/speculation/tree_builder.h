#pragma once
// The best draft tree of any size: DDTree's best-first search (design.md, section 2, step 2) over the drafter's
// marginals, one node at a time.

#include <cstdint>
#include <span>
#include <vector>

#include "engine/speculation/draft_tree.h"

namespace canopy {

/// The k most probable tokens of one depth, as the top-k op returns them.
struct DepthCandidates {
  std::span<const uint32_t> tokens;  // [k] all different
  std::span<const float> logits;     // [k] largest first, ties by the lowest token
  double log_sum_exp = 0;            // over the whole row, so that log q = logit - log_sum_exp
};

/// Turns the drafter's log q of one depth into the one that orders the tree: min(0, scale * log q + shift). scale >= 0,
/// so that ranks keep their order.
struct DepthCalibration {
  double scale = 1;
  double shift = 0;
};

enum class TreeStep {
  added,             // one more node
  needs_candidates,  // the next node may be one beyond the candidates of starved_depth(): extend() first
  complete,          // there is no other node
};

/// Adds nodes in order of their score, the sum of log q along the path: after n nodes the tree holds the n most
/// probable paths. Equal scores: the lower tuple of ranks first (a path comes before those that continue it).
///
///   builder.begin(root, depths, vocab);
///   while (builder.build(budget) == TreeStep::needs_candidates) builder.extend(more of builder.starved_depth());
///
/// A rule that stops by value calls next() itself, reads tree().nodes().back().score, and may cut() afterwards. Keeps
/// its memory from tree to tree: trees no larger than those before allocate nothing.
class TreeBuilder {
 public:
  /// Starts a tree; depths[d - 1] holds the candidates of depth d, which are copied.
  ///   available    candidates that exist at every depth: the vocabulary, or fewer where higher ranks shall not occur
  ///   calibration  one entry a depth; empty for none
  /// Throws Error(bad_input) naming the depth for no candidates, more than `available`, lists of different lengths, NaN
  /// or infinite values, candidates out of order, a log_sum_exp below the largest logit, or a bad calibration.
  void begin(uint32_t root_token, std::span<const DepthCandidates> depths, uint32_t available,
             std::span<const DepthCalibration> calibration = {});

  /// Adds the most probable path that is not in the tree yet.
  TreeStep next();

  /// next() until `budget` nodes are drafted. Returns added when they are (also when nothing was left to do).
  TreeStep build(uint32_t budget);

  /// After begin(): the tree of plain DFlash instead, the most probable token of each depth, at most `budget` of them.
  void build_chain(uint32_t budget);

  /// After needs_candidates: the depth (1 ...) whose last candidate is in the tree, and how many it has.
  uint32_t starved_depth() const { return starved_depth_; }
  uint32_t candidates_at(uint32_t depth) const { return levels_.at(depth - 1).count; }

  /// Gives a depth more candidates: the ones it has, in the same order, and at least one more. The tree continues
  /// as if they had been there from the start. Throws Error(bad_input) as begin() does, and when they do not continue
  /// those that were there.
  void extend(uint32_t depth, const DepthCandidates& more);

  const DraftTree& tree() const { return tree_; }
  /// Keeps the first `width` nodes and ends the search.
  void cut(uint32_t width);

 private:
  struct Candidate {
    double log_q = 0;
    double gain = 0;  // calibrated log q: what it adds to its path's score
    float logit = 0;
    uint32_t token = 0;
  };

  /// The candidates of one depth: candidates_[first ... first + count).
  struct Level {
    size_t first = 0;
    uint32_t count = 0;
    double log_sum_exp = 0;
    DepthCalibration calibration;
  };

  /// A path that could be added: candidate `rank` as a child of node `parent`.
  struct Prospect {
    double score = 0;
    uint32_t parent = 0;
    uint32_t rank = 0;
  };

  void append_candidates(uint32_t depth, const DepthCandidates& given);
  const Candidate& candidate(uint32_t depth, uint32_t rank) const;
  void push(uint32_t parent, uint32_t rank);
  Prospect pop();
  bool after(const Prospect& a, const Prospect& b) const;
  bool lower_ranks(Prospect a, Prospect b) const;

  DraftTree tree_;
  std::vector<Candidate> candidates_;
  std::vector<Level> levels_;
  std::vector<Prospect> frontier_;  // a heap: the best in front
  uint32_t available_ = 0;
  uint32_t starved_depth_ = 0;  // 0: none
  Prospect starved_;            // the path that waits for a candidate; its score is not known
};

}  // namespace canopy
