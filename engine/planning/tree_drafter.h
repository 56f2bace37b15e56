#pragma once
// Drafts behind a text and builds the draft tree of a round from the candidates (docs/architecture.md, "Rounds").

#include <cstdint>
#include <memory>
#include <span>
#include <stop_token>
#include <vector>

#include "engine/planning/draft_source.h"
#include "engine/speculation/paper_rule.h"
#include "engine/speculation/tree_builder.h"

namespace canopy {

class TreeDrafter {
 public:
  /// The source must outlive this.
  explicit TreeDrafter(DraftSource& source) : source_(source) {}

  /// Drafts `depths` tokens behind the root. False when stop was requested.
  bool draft(uint32_t root, uint32_t depths, const std::stop_token& stop);

  /// Starts a tree over the last draft. A calibration has one entry for each depth, or none at all; only the
  /// `available` most probable tokens of a depth are used.
  void begin(std::span<const DepthCalibration> calibration = {}, uint32_t available = TreeNode::none);

  /// TreeBuilder::next(), with candidates fetched where the tree wants more than the draft brought. False: complete, or
  /// the source has no more candidates.
  bool next();

  /// The `budget` most probable paths, or all there are.
  void build(uint32_t budget);

  /// Adds nodes until the rule ends the tree.
  void grow(PaperRule& rule);

  /// The most probable token of each depth, as far as `budget` goes.
  void build_chain(uint32_t budget) { builder_.build_chain(budget); }

  void cut(uint32_t width) { builder_.cut(width); }

  const DraftTree& tree() const { return builder_.tree(); }
  /// The last draft; there must be one.
  const BlockDraft& last() const { return *draft_; }
  /// Of the last draft, by the device's clock.
  double device_ms() const { return source_.device_ms(); }
  /// The candidates that the last draft has of each depth, without those that were fetched later.
  std::span<const DepthCandidates> candidates() const { return depths_; }
  /// A copy of the last draft with all that was fetched for its trees.
  std::shared_ptr<const KeptDraft> kept() const;

 private:
  bool fetch_more(uint32_t depth);

  DraftSource& source_;
  TreeBuilder builder_;
  uint32_t root_ = 0;
  uint32_t available_ = 0;
  const BlockDraft* draft_ = nullptr;
  std::vector<DepthCandidates> depths_;
  std::vector<MoreCandidates> more_;  // that were fetched, by depth
};

}  // namespace canopy
