#pragma once
// What a drafter says of one block: the most probable tokens of each depth.

#include <cstdint>
#include <span>
#include <vector>

#include "engine/speculation/tree_builder.h"

namespace canopy {

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

}  // namespace canopy
