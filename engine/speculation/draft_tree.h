#pragma once
// The draft tree of one round (design.md, section 2): what the target verifies in one pass, a row a node.

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace canopy {

/// One token that may follow the path from the root to its parent.
struct TreeNode {
  static constexpr uint32_t none = std::numeric_limits<uint32_t>::max();

  uint32_t token = 0;
  uint32_t parent = none;  // index in the tree; none for the root
  uint32_t depth = 0;      // distance from the root
  uint32_t rank = 0;       // among the drafter's candidates of its depth, 0 the most probable
  double log_q = 0;        // log of the drafter's probability of the token, at most 0
  double score = 0;        // log of the path's probability by which the tree is ordered; the root's is 0
};

/// Nodes with parents before their children; node 0 is the root. Any first part of it is a tree too.
class DraftTree {
 public:
  explicit DraftTree(uint32_t root_token = 0) { reset(root_token); }

  /// A tree of the root alone. Keeps its memory.
  void reset(uint32_t root_token);

  /// Appends a child of node `parent` and returns its index. Throws Error(bad_input) when there is no such parent. That
  /// siblings have different tokens is the caller's care.
  uint32_t add(uint32_t parent, uint32_t token, uint32_t rank, double log_q, double score);

  /// Keeps the first `width` nodes. Throws Error(bad_input) unless 1 <= width <= width().
  void cut(uint32_t width);

  /// Rows of the pass: the root and the drafted nodes.
  uint32_t width() const { return static_cast<uint32_t>(nodes_.size()); }
  uint32_t drafted() const { return width() - 1; }
  std::span<const TreeNode> nodes() const { return nodes_; }
  const TreeNode& operator[](uint32_t node) const { return nodes_[node]; }

  /// The child of `parent` that carries `token`, or TreeNode::none. Looks at the nodes behind `parent` only, so that
  /// following a path costs one sweep over the tree.
  uint32_t child(uint32_t parent, uint32_t token) const;

 private:
  std::vector<TreeNode> nodes_;
};

}  // namespace canopy
