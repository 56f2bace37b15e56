#pragma once
// Drafts of a model that predicts one token at a time, along several paths at once: each pass goes on with the most
// probable paths so far, so that every candidate stands behind the very path that it was predicted behind. And those of
// a block drafter whose tokens depend on the ones before them, as far as a tree goes.

#include <cstdint>
#include <stop_token>

#include "engine/speculation/ddtree.h"
#include "engine/speculation/draft_source.h"

namespace canopy {

/// Paths that one pass goes on with at most.
inline constexpr uint32_t kMostBeams = 8;

/// What predicts the next token behind nodes: a draft model, or a head on the target's states.
class NodeRunner {
 public:
  virtual ~NodeRunner() = default;

  /// Runs the nodes first ... tree.width() - 1 in one pass, each of which sees the text and its own path from the root.
  /// All nodes before were run since the tree was begun; first == 0 begins one, whose root is the text's last token.
  /// Appends what is likeliest behind each of them, in their order, by add_list(). False when stop was requested.
  virtual bool run(const DraftTree& tree, uint32_t first, BlockDraft& draft, const std::stop_token& stop) = 0;
};

/// Appends a list of draft.candidates tokens: the likeliest of a row with their logits, largest first. Tokens that the
/// target does not have, those from `vocabulary` on, and logits that are no numbers are left out; in their place stand
/// others that are most improbable.
void add_list(std::span<const uint32_t> tokens, std::span<const float> logits, float log_sum_exp, uint32_t vocabulary,
              BlockDraft& draft);

/// Drafts up to wish.depths tokens behind `root`. A pass for each depth: the first runs the root; each later one goes
/// on with those candidates of the depth before, whatever their parents, whose paths are most probable, as many as
/// wish.costs says (kMostBeams at most); equal ones in the order of their lists. `run` becomes the tree of all nodes
/// that were run: list i of the draft is behind its node i, whose score is the path's calibrated log p. False when stop
/// was requested. Both keep their memory.
bool draft_beams(NodeRunner& runner, uint32_t root, const DraftWish& wish, DraftTree& run, BlockDraft& draft,
                 const std::stop_token& stop);

/// Paths of a draft by draft_paths() that there are lists behind, at most: a tree of more nodes grows on by the
/// candidates of these.
inline constexpr uint32_t kMostPaths = 64;

/// The same for a drafter whose lists behind further paths cost little: lists behind all paths that a tree of
/// wish.nodes nodes has (kMostPaths at most), the most probable ones, each once its parent's list is known; none of
/// them deeper than wish.depths. With 0 nodes behind the likeliest token of each list alone. The draft is marked as one
/// of one pass.
bool draft_paths(NodeRunner& runner, uint32_t root, const DraftWish& wish, DraftTree& run, BlockDraft& draft,
                 const std::stop_token& stop);

}  // namespace canopy
