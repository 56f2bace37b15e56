#pragma once
// A round's tree as it is drawn: what happened to each node, the bonus as a node of its own, siblings in order.

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/trace/round_record.h"

namespace canopy::app {

/// What happened to a token (look.md's five looks of a node).
enum class NodeFate : uint8_t { root, accepted, rejected, not_reached, bonus };
inline constexpr size_t kFates = 5;

struct TreeNodeView {
  uint32_t parent = TreeNode::none;
  uint32_t depth = 0;
  uint32_t rank = 0;  // among the drafter's candidates of its depth; of the bonus: behind all that were drafted there
  std::optional<uint32_t> token;  // none: the root of an AR round whose text before is not known
  NodeFate fate = NodeFate::not_reached;
  double q = 1;     // the drafter's probability of the token; 1 where it has none (root, bonus)
  double path = 1;  // the drafter's probability of the path to it; of the bonus that of its parent
};

struct TreeModel {
  std::vector<TreeNodeView> nodes;  // those of the record in its order, parents first; then the bonus
  std::vector<uint32_t> path;       // from the root along what the text took, the bonus last
  std::optional<uint32_t> bonus;    // its place in nodes; none where the reply ended inside the tree
  std::array<uint32_t, kFates> count{};
  uint32_t depth = 0;  // of the deepest node

  /// By rank, ascending.
  std::span<const uint32_t> children(uint32_t node) const {
    return std::span(child_).subspan(first_child_[node], first_child_[node + 1] - first_child_[node]);
  }
  uint32_t counted(NodeFate fate) const { return count[static_cast<size_t>(fate)]; }
  /// The child that the text took, or none.
  uint32_t next_on_path(uint32_t node) const { return next_on_path_[node]; }
  bool on_path(uint32_t node) const;
  uint32_t size() const { return static_cast<uint32_t>(nodes.size()); }

 private:
  friend TreeModel tree_model(const RoundRecord&, std::optional<uint32_t>);
  void add_bonus(const RoundRecord& record, uint32_t parent);
  void order_children();

  std::vector<uint32_t> child_, first_child_, next_on_path_;
};

/// root_token: of an AR round, whose record has no nodes: the last token before it, where it is known.
/// States follow the text that was written, not the walk: behind a stop token nobody knows what was right.
TreeModel tree_model(const RoundRecord& record, std::optional<uint32_t> root_token = std::nullopt);

/// What drafting the likeliest token of each depth, one after the other, would have emitted in this round.
struct ChainEstimate {
  uint32_t emitted = 1;
  bool at_least = false;  // the record does not say what the drafter held likeliest one deeper
};

/// None for an AR round and for one that was a chain. The drafter's ranks at a depth do not depend on the path, so
/// any node of rank 0 names what the chain would have held there.
std::optional<ChainEstimate> chain_estimate(const RoundRecord& record, const TreeModel& tree);

/// Rejected children of one node of the path with everything below them, either those that the drafter held likelier
/// than the accepted child or those behind it.
struct TreeWedge {
  uint32_t parent = 0;             // on the path
  bool likelier = true;            // before the accepted rank: drawn above the path
  uint32_t nodes = 0;              // folded, all depths
  double q = 0;                    // sum of the drafter's probabilities of the rejected children: at most 1
  std::vector<uint32_t> children;  // the rejected ones, by rank
};

/// Wedges by depth, the likelier ones first. Their nodes are exactly those that were not taken. Behind the last drafted
/// node of the path all are likelier: the bonus was not drafted.
std::vector<TreeWedge> fold_rejected(const TreeModel& tree);

}  // namespace canopy::app
