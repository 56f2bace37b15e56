#include "app/layout/tree_transition.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace canopy::app {
namespace {

/// All nodes, those of the path first.
std::vector<uint32_t> path_first(const TreeModel& tree) {
  std::vector<uint32_t> order(tree.path);
  for (uint32_t i = 0; i < tree.size(); ++i)
    if (!tree.on_path(i)) order.push_back(i);
  return order;
}

}  // namespace

std::vector<NodeKey> node_keys(const TreeModel& tree, uint32_t context) {
  std::vector<NodeKey> keys;
  keys.reserve(tree.size());
  for (const TreeNodeView& node : tree.nodes)
    keys.push_back({uint64_t{context} + node.depth, node.token.value_or(TreeNode::none)});
  return keys;
}

std::vector<uint32_t> match_nodes(const TreeModel& before, const std::vector<NodeKey>& before_keys,
                                  const TreeModel& now, const std::vector<NodeKey>& now_keys) {
  std::map<NodeKey, std::vector<uint32_t>> known;  // nodes of each key, the best match last
  std::vector<uint32_t> order = path_first(before);
  std::reverse(order.begin(), order.end());
  for (const uint32_t node : order) known[before_keys[node]].push_back(node);
  std::vector<uint32_t> match(now.size(), TreeNode::none);
  for (const uint32_t node : path_first(now)) {
    const auto found = known.find(now_keys[node]);
    if (found == known.end() || found->second.empty()) continue;
    match[node] = found->second.back();
    found->second.pop_back();
  }
  return match;
}

void blend(const std::vector<NodeBox>& before, const std::vector<uint32_t>& match, float t, std::vector<NodeBox>& now) {
  const float left = 1 - ease_in_out(t);
  for (size_t i = 0; i < now.size(); ++i) {
    if (match[i] >= before.size()) continue;
    const NodeBox& from = before[match[i]];
    now[i].x += (from.x - now[i].x) * left;
    now[i].y += (from.y - now[i].y) * left;
  }
}

float ease_in_out(float t) {
  t = std::clamp(t, 0.0f, 1.0f);
  return t < 0.5f ? 4 * t * t * t : 1 - std::pow(2 - 2 * t, 3.0f) / 2;
}

float ease_out(float t) {
  t = std::clamp(t, 0.0f, 1.0f);
  return 1 - std::pow(1 - t, 3.0f);
}

}  // namespace canopy::app
