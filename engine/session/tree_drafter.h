#pragma once
// From the drafter's pass to the tree of a round: design.md, section 2, steps 1 and 2.

#include <cstdint>
#include <functional>
#include <span>
#include <stop_token>
#include <vector>

#include "engine/model/sequence.h"
#include "engine/speculation/paper_rule.h"
#include "engine/speculation/tree_builder.h"

namespace canopy {

class TreeDrafter {
 public:
  /// For a sequence that has a drafter; it must outlive this.
  explicit TreeDrafter(Sequence& sequence) : sequence_(sequence) {}

  /// Drafts `depths` tokens behind the root. False when stop was requested.
  bool draft(uint32_t root, uint32_t depths, const std::stop_token& stop);

  /// Starts a tree over the last draft. A calibration has one entry a depth, or none at all; ranks from `available` on
  /// do not occur.
  void begin(std::span<const DepthCalibration> calibration = {}, uint32_t available = TreeNode::none);

  /// TreeBuilder::next(), with candidates fetched where the tree wants more than the draft brought. False: complete.
  bool next();

  /// The `budget` most probable paths, or all there are.
  void build(uint32_t budget);

  /// Lets a rule choose the tree.
  void grow(PaperRule& rule);

  /// The most probable token of each depth, as far as `budget` goes.
  void build_chain(uint32_t budget) { builder_.build_chain(budget); }

  void cut(uint32_t width) { builder_.cut(width); }

  const DraftTree& tree() const { return builder_.tree(); }
  const Draft& last() const { return draft_; }
  /// Of each depth, what the last draft brought.
  std::span<const DepthCandidates> candidates() const { return depths_; }

 private:
  DepthCandidates candidates_at(uint32_t depth) const;
  void fetch_more(uint32_t depth);

  Sequence& sequence_;
  TreeBuilder builder_;
  uint32_t root_ = 0;
  uint32_t available_ = 0;
  Draft draft_;
  std::vector<DepthCandidates> depths_;
  std::vector<uint32_t> more_tokens_;  // of the depth that is extended
  std::vector<float> more_logits_;
};

}  // namespace canopy
