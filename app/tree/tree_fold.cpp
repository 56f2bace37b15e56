#include "app/tree/tree_fold.h"

namespace canopy::app {
namespace {

/// Nodes of each subtree, its root included.
std::vector<uint32_t> subtree_sizes(const TreeModel& tree) {
  std::vector<uint32_t> size(tree.size(), 1);
  for (uint32_t node = tree.size(); node-- > 1;) size[tree.nodes[node].parent] += size[node];
  return size;
}

}  // namespace

std::vector<TreeWedge> fold_rejected(const TreeModel& tree) {
  const std::vector<uint32_t> size = subtree_sizes(tree);
  std::vector<TreeWedge> wedges;
  for (const uint32_t parent : tree.path) {
    TreeWedge before{.parent = parent, .likelier = true, .children = {}};
    TreeWedge behind{.parent = parent, .likelier = false, .children = {}};
    bool passed = false;
    for (const uint32_t child : tree.children(parent)) {
      if (child == tree.next_on_path(parent)) {
        passed = true;
        continue;
      }
      TreeWedge& wedge = passed ? behind : before;
      wedge.nodes += size[child];
      wedge.q += tree.nodes[child].q;
      wedge.children.push_back(child);
    }
    for (TreeWedge* wedge : {&before, &behind})
      if (wedge->nodes > 0) wedges.push_back(std::move(*wedge));
  }
  return wedges;
}

}  // namespace canopy::app
