#include "app/layout/tree_model.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "engine/trace/round_statistics.h"

namespace canopy::app {
namespace {

TreeNodeView view_of(const RoundNode& row) {
  TreeNodeView view;
  view.parent = row.node.parent;
  view.depth = row.node.depth;
  view.rank = row.node.rank;
  view.token = row.node.token;
  view.q = std::exp(std::min(0.0, row.node.log_q));
  view.path = std::exp(std::min(0.0, row.node.score));
  return view;
}

}  // namespace

bool TreeModel::on_path(uint32_t node) const {
  const uint32_t depth = nodes[node].depth;
  return depth < path.size() && path[depth] == node;
}

void TreeModel::add_bonus(const RoundRecord& record, uint32_t parent) {
  TreeNodeView view;
  view.parent = parent;
  view.depth = nodes[parent].depth + 1;
  for (const TreeNodeView& node : nodes) {
    if (node.parent == parent) view.rank = std::max(view.rank, node.rank + 1);
  }
  view.token = record.emitted.back();
  view.fate = NodeFate::bonus;
  view.path = nodes[parent].path;
  bonus = size();
  nodes.push_back(view);
  path.push_back(*bonus);
}

/// Sorts children by parent (a counting sort), then by rank.
void TreeModel::order_children() {
  first_child_.assign(nodes.size() + 1, 0);
  for (uint32_t i = 1; i < size(); ++i) ++first_child_[nodes[i].parent + 1];
  std::partial_sum(first_child_.begin(), first_child_.end(), first_child_.begin());
  child_.resize(nodes.size() - 1);
  std::vector<uint32_t> next(first_child_.begin(), first_child_.end() - 1);
  for (uint32_t i = 1; i < size(); ++i) child_[next[nodes[i].parent]++] = i;
  const auto by_rank = [&](uint32_t a, uint32_t b) { return nodes[a].rank < nodes[b].rank; };
  for (uint32_t i = 0; i < size(); ++i)
    std::stable_sort(child_.begin() + first_child_[i], child_.begin() + first_child_[i + 1], by_rank);
  next_on_path_.assign(nodes.size(), TreeNode::none);
  for (size_t i = 1; i < path.size(); ++i) next_on_path_[path[i - 1]] = path[i];
}

TreeModel tree_model(const RoundRecord& record, std::optional<uint32_t> root_token) {
  TreeModel tree;
  tree.nodes.reserve(record.nodes.size() + 2);
  for (const RoundNode& row : record.nodes) tree.nodes.push_back(view_of(row));
  if (tree.nodes.empty()) tree.nodes.push_back({.token = root_token});
  const DraftedPart part = drafted_part(record);
  for (uint32_t node = part.last_node; node != TreeNode::none; node = tree.nodes[node].parent) {
    tree.nodes[node].fate = node == 0 ? NodeFate::root : NodeFate::accepted;
    tree.path.push_back(node);
  }
  std::reverse(tree.path.begin(), tree.path.end());
  for (uint32_t i = 1; i < tree.size(); ++i) {
    TreeNodeView& node = tree.nodes[i];
    if (node.fate == NodeFate::accepted) continue;
    const NodeFate above = tree.nodes[node.parent].fate;
    // What comes after the end of the reply was neither accepted nor rejected.
    const bool refused =
        (above == NodeFate::root || above == NodeFate::accepted) && !(part.cut && node.parent == part.last_node);
    node.fate = refused ? NodeFate::rejected : NodeFate::not_reached;
  }
  if (!part.cut && !record.emitted.empty()) tree.add_bonus(record, part.last_node);
  for (const TreeNodeView& node : tree.nodes) {
    ++tree.count[static_cast<size_t>(node.fate)];
    tree.depth = std::max(tree.depth, node.depth);
  }
  tree.order_children();
  return tree;
}

std::optional<ChainEstimate> chain_estimate(const RoundRecord& record, const TreeModel& tree) {
  if (record.nodes.size() < 2 || record.shape == DecodeMode::chain) return std::nullopt;
  std::vector<std::optional<uint32_t>> likeliest(size_t{tree.depth} + 2);
  for (const TreeNodeView& node : tree.nodes) {
    if (node.depth > 0 && node.rank == 0 && node.fate != NodeFate::bonus) likeliest[node.depth] = node.token;
  }
  ChainEstimate estimate{0, false};
  for (size_t depth = 1; depth <= record.emitted.size(); ++depth) {
    ++estimate.emitted;
    if (depth >= likeliest.size() || !likeliest[depth]) {
      // If the accepted node at this depth has another rank, the chain ended here. If nothing is known of it, the chain
      // may have gone on.
      const bool accepted_other = depth < tree.path.size() && tree.nodes[tree.path[depth]].fate == NodeFate::accepted;
      estimate.at_least = !accepted_other;
      return estimate;
    }
    if (*likeliest[depth] != record.emitted[depth - 1]) return estimate;
  }
  // The chain was right up to the end of the round. If the reply went on, the chain may have had more right tokens.
  if (tree.bonus) estimate = {estimate.emitted + 1, true};
  return estimate;
}

}  // namespace canopy::app
