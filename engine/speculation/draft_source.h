#pragma once
// What a DFlash drafter says of one block, the most probable tokens of each depth; and whatever can be asked for such
// a draft: a model's drafter, or a recording of one.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <stop_token>
#include <vector>

#include "engine/speculation/ddtree.h"

namespace canopy {

// What a drafter says of one block: the most probable tokens of each depth.

struct BlockDraft {
  uint32_t depths = 0;
  uint32_t candidates = 0;         // of each depth
  std::vector<uint32_t> tokens;    // [depths, candidates] ids of the target's vocabulary
  std::vector<float> logits;       // [depths, candidates] largest first, ties by the lowest token
  std::vector<float> log_sum_exp;  // [depths] over all tokens that the drafter's head is over
  /// The candidates of a depth are those behind the most probable tokens of the depths before, as a model gives them
  /// that drafts token by token; else they are the same behind whatever tokens.
  bool behind_best = false;

  /// depth: 1 ... depths
  DepthCandidates at(uint32_t depth) const {
    const size_t first = size_t{depth - 1} * candidates;
    return {std::span(tokens).subspan(first, candidates), std::span(logits).subspan(first, candidates),
            double{log_sum_exp[depth - 1]}};
  }
};

/// How much is to be drafted.
struct DraftWish {
  uint32_t depths = 1;  // tokens behind the root
  /// A model that drafts token by token ends behind a path that is less probable than this, as calibrated by depth
  /// (empty: as it says).
  double least_p = 0;
  std::span<const DepthCalibration> calibration = {};
};

/// The path of the most probable tokens while it is drafted token by token.
class BestPath {
 public:
  explicit BestPath(const DraftWish& wish) : wish_(wish) {}

  /// Whether another token is worth drafting behind the best of these, the candidates of the next depth.
  bool goes_on(const DepthCandidates& next) {
    double log_q = std::min(0.0, next.logits.front() - next.log_sum_exp);
    if (depth_ < wish_.calibration.size()) {
      const DepthCalibration& c = wish_.calibration[depth_];
      log_q = std::min(0.0, c.scale * log_q + c.shift);
    }
    log_p_ += log_q;
    return ++depth_ < wish_.depths && std::exp(log_p_) >= wish_.least_p;
  }

 private:
  const DraftWish& wish_;
  double log_p_ = 0;
  uint32_t depth_ = 0;
};

/// All the candidates of a depth that a tree asked for, more than the draft had of it: those first, then further ones.
struct MoreCandidates {
  uint32_t depth = 0;
  std::vector<uint32_t> tokens = {};
  std::vector<float> logits = {};
};

/// A draft with all that was built of it, to build the same again.
struct KeptDraft {
  BlockDraft block;
  std::vector<MoreCandidates> more;  // ascending depths, each at most once

  /// The further candidates of a depth; null where none were asked for.
  const MoreCandidates* more_at(uint32_t depth) const {
    for (const MoreCandidates& each : more) {
      if (each.depth == depth) return &each;
    }
    return nullptr;
  }
};

// Drafts that cost no pass.

/// One token that a source expects behind a path, and its probability given the path.
struct TokenCandidate {
  uint32_t token = 0;
  double p = 0;
};

/// A token behind a path that a source names itself.
struct CandidateNode {
  static constexpr uint32_t root = UINT32_MAX;

  uint32_t parent = root;  // index in the list, smaller than this node's; `root` for children of the tree's root
  uint32_t token = 0;
  double p = 0;  // given the path
};

/// What stood behind the last tokens of a text where they stood before, or what was recycled (token_recycling.h).
struct FreeDraft {
  std::vector<CandidateNode> nodes;
  uint32_t match = 0;    // tokens of the text's end that were found again; 0: none, or not looked for
  bool earlier = false;  // in earlier replies, not in the text itself
  uint32_t depth = 0;    // of the deepest node; children of the root have 1

  bool empty() const { return nodes.empty(); }
};

// What drafts the tokens behind a text: a model's drafter, or a recording of one.

class DraftSource {
 public:
  virtual ~DraftSource() = default;

  /// Tokens of the longest draft of a model, B - 1; 0: no model drafts here, and draft() is not called.
  virtual uint32_t max_depth() const = 0;
  /// Features that the next draft injects first.
  virtual uint32_t backlog() const = 0;
  /// Features that can wait for one.
  virtual uint32_t most_waiting() const = 0;
  /// Tokens that are drafted at all: the vocabulary, or a part of it.
  virtual uint32_t drafted_tokens() const = 0;

  /// What the text itself suggests behind its last token, at most `depths` tokens deep: some microseconds. Empty where
  /// nothing was found, or nobody looks. Stays as it is until the next call.
  virtual const FreeDraft& from_text(uint32_t depths) = 0;

  /// What was recycled for the root; likewise.
  virtual const FreeDraft& recycled(uint32_t root, uint32_t depths) = 0;

  /// Drafts behind the root, which stands behind the text: 1 ... max_depth() tokens. Null when stop was requested.
  /// Stays as it is until the next call.
  virtual const BlockDraft* draft(uint32_t root, const DraftWish& wish, const std::stop_token& stop) = 0;
  /// Milliseconds of the last draft by the device's clock; 0 where it has none.
  virtual double device_ms() const { return 0; }

  /// Replaces both lists by the candidates of a depth of the last draft: those that it had, then others, `count` of
  /// them where there are as many. False where no more are known than `known`.
  virtual bool more(uint32_t depth, uint32_t known, uint32_t count, std::vector<uint32_t>& tokens,
                    std::vector<float>& logits) = 0;
};

}  // namespace canopy
