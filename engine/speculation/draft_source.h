#pragma once
// What a DFlash drafter says of one block, the most probable tokens of each depth; and whatever can be asked for such
// a draft: a model's drafter, or a recording of one.

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

  /// depth: 1 ... depths
  DepthCandidates at(uint32_t depth) const {
    const size_t first = size_t{depth - 1} * candidates;
    return {std::span(tokens).subspan(first, candidates), std::span(logits).subspan(first, candidates),
            double{log_sum_exp[depth - 1]}};
  }
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

// What drafts the tokens behind a text: a model's drafter, or a recording of one.

class DraftSource {
 public:
  virtual ~DraftSource() = default;

  /// Tokens of the longest draft, B - 1.
  virtual uint32_t max_depth() const = 0;
  /// Features that the next draft injects first.
  virtual uint32_t backlog() const = 0;
  /// Features that can wait for one.
  virtual uint32_t most_waiting() const = 0;
  /// Tokens that are drafted at all: the vocabulary, or a part of it.
  virtual uint32_t drafted_tokens() const = 0;

  /// Drafts `depths` tokens behind the root, which stands behind the text; 1 ... max_depth(). Null when stop was
  /// requested. Stays as it is until the next call.
  virtual const BlockDraft* draft(uint32_t root, uint32_t depths, const std::stop_token& stop) = 0;
  /// Milliseconds of the last draft by the device's clock; 0 where it has none.
  virtual double device_ms() const { return 0; }

  /// Replaces both lists by the candidates of a depth of the last draft: those that it had, then others, `count` of
  /// them where there are as many. False where no more are known than `known`.
  virtual bool more(uint32_t depth, uint32_t known, uint32_t count, std::vector<uint32_t>& tokens,
                    std::vector<float>& logits) = 0;
};

}  // namespace canopy
