#pragma once
// Scores drafts against the text that followed (full information; design.md, section 3). The text is the same for every
// width, so the tokens after a root show how many tokens each width of the tree, and the chain, would have accepted.

#include <cstdint>
#include <deque>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "engine/speculation/draft_tree.h"
#include "engine/speculation/tree_builder.h"

namespace canopy {

/// How much of a draft of `depths` tokens the following text confirmed.
struct DraftOutcome {
  static constexpr uint32_t no_rank = std::numeric_limits<uint32_t>::max();

  // Of the tree as it was built, before it was cut. `predicted` and `raw` are cumulated over the best-first order:
  // entry W - 1 is the number of tokens that a tree of width W was expected to have accepted.
  std::vector<double> predicted;  // [built] by the scores that ordered the tree
  std::vector<double> raw;        // [built] by the drafter's own log q
  // [depths] by the most probable token of each depth: entry L - 1 for a chain of L tokens
  std::vector<double> chain_predicted;

  std::vector<uint32_t> reach;  // reach[j - 1]: the narrowest width whose tree accepted j tokens; ascending
  uint32_t chain = 0;           // tokens that a chain of all depths accepted
  std::vector<uint32_t> ranks;  // [depths] of the true token among the candidates of its depth, or no_rank

  // [depths, listed] log q of the most probable candidates of each depth
  std::vector<float> log_q;
  uint32_t listed = 0;

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
  /// `depths` what it was built from, `calibration` what it was ordered by (empty for none). Throws Error(bad_input)
  /// when the tree is deeper than `depths`, or for a wrong number of calibrations.
  void add(const DraftTree& tree, std::span<const DepthCandidates> depths,
           std::span<const DepthCalibration> calibration);

  /// The text goes on with `tokens`. Calls settled(const DraftOutcome&) for each draft whose every depth is known now,
  /// oldest first. A draft whose first token was wrong is settled no earlier than the others: failures would otherwise
  /// be learnt sooner than successes.
  template <class Settled>
  void follow(std::span<const uint32_t> tokens, Settled&& settled) {
    for (const uint32_t token : tokens) {
      for (Pending& draft : pending_) draft.truth.push_back(token);
      while (!pending_.empty() && pending_.front().truth.size() >= pending_.front().outcome.depths()) {
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
    std::vector<std::vector<uint32_t>> candidates;  // [depths][k] tokens
    std::vector<uint32_t> truth;                    // the text behind the root so far
  };

  static void settle(Pending& draft);
  void retire_oldest();

  std::deque<Pending> pending_;
  std::vector<Pending> spare_;  // keep their memory
};

}  // namespace canopy
