#pragma once
// The tree of a round as it is drawn: the fate of each node, the bonus as an additional node, and siblings in order.

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/trace/round_record.h"

namespace canopy::app {

/// What happened to a token (the five looks of a node in look.md).
enum class NodeFate : uint8_t { root, accepted, rejected, not_reached, bonus };
inline constexpr size_t kFates = 5;

struct TreeNodeView {
  uint32_t parent = TreeNode::none;
  uint32_t depth = 0;
  uint32_t rank = 0;  // among the drafter's candidates of its depth, from 0; the bonus comes after all drafted siblings
  std::optional<uint32_t> token;  // none for the root of an AR round if the text before it is not known
  NodeFate fate = NodeFate::not_reached;
  double q = 1;     // the drafter's probability of the token; 1 for root and bonus, which were not drafted
  double path = 1;  // the drafter's probability of the path to this node; for the bonus that of its parent
};

struct TreeModel {
  std::vector<TreeNodeView> nodes;  // the nodes of the record in their order, parents first; then the bonus
  std::vector<uint32_t> path;       // the nodes that became text, from the root; the bonus last
  std::optional<uint32_t> bonus;    // index in nodes; none where the reply ended inside the tree
  std::array<uint32_t, kFates> count{};
  uint32_t depth = 0;  // of the deepest node

  /// The children of a node, by ascending rank.
  std::span<const uint32_t> children(uint32_t node) const {
    return std::span(child_).subspan(first_child_[node], first_child_[node + 1] - first_child_[node]);
  }
  uint32_t counted(NodeFate fate) const { return count[static_cast<size_t>(fate)]; }
  /// The child that became text, or TreeNode::none.
  uint32_t next_on_path(uint32_t node) const { return next_on_path_[node]; }
  bool on_path(uint32_t node) const;
  uint32_t size() const { return static_cast<uint32_t>(nodes.size()); }

 private:
  friend TreeModel tree_model(const RoundRecord&, std::optional<uint32_t>);
  void add_bonus(const RoundRecord& record, uint32_t parent);
  void order_children();

  std::vector<uint32_t> child_, first_child_, next_on_path_;
};

/// Makes the model of a record. root_token: for an AR round, whose record has no nodes, the token before it if it is
/// known. The fates follow the text that was written: after a stop token it is not known which nodes were right.
TreeModel tree_model(const RoundRecord& record, std::optional<uint32_t> root_token = std::nullopt);

/// How many tokens this round would have emitted with a chain: the likeliest token of each depth.
struct ChainEstimate {
  uint32_t emitted = 1;
  // It may have been more: the record does not have the drafter's likeliest token at the next depth.
  bool at_least = false;
};

/// None for an AR round and for a round that drafted a chain. The drafter's ranks at a depth do not depend on the path,
/// so any node of rank 0 has the chain's token of that depth.
std::optional<ChainEstimate> chain_estimate(const RoundRecord& record, const TreeModel& tree);

}  // namespace canopy::app
