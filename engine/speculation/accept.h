#pragma once
// Which of a draft tree the target would have written itself: design.md, section 2, step 4.

#include <concepts>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "engine/speculation/draft_tree.h"

namespace canopy {

/// The accepted path of a round. The round emits the tokens of nodes[1 ...], then the bonus, which is the next root.
struct AcceptedPath {
  std::vector<uint32_t> nodes = {0};  // indices in the tree; nodes[d] has depth d, nodes[0] is the root
  uint32_t bonus = 0;                 // the target's own token after the last node

  uint32_t accepted() const { return static_cast<uint32_t>(nodes.size()) - 1; }
  uint32_t emitted() const { return accepted() + 1; }
};

/// The target's own next token at a node, and whether the text ends with it: then no child of it is followed, since
/// autoregressive decoding would not have computed its row.
struct WalkedToken {
  WalkedToken(uint32_t id, bool is_last = false) : token(id), ends(is_last) {}  // NOLINT: most walks do not end early
  uint32_t token = 0;
  bool ends = false;
};

/// From the root on, takes the target's own next token, choose(node), and follows the child that carries it, until
/// there is none. choose is called once for each node of the path, in order, and nodes holds the path up to that node:
/// what penalties and random numbers depend on is known by then. Replaces what `path` held and keeps its memory.
template <std::invocable<uint32_t> Choose>
void accept(const DraftTree& tree, Choose&& choose, AcceptedPath& path) {
  path.nodes.assign(1, 0);
  for (;;) {
    const uint32_t node = path.nodes.back();
    const WalkedToken next = choose(node);
    path.bonus = next.token;
    const uint32_t child = next.ends ? TreeNode::none : tree.child(node, next.token);
    if (child == TreeNode::none) return;
    path.nodes.push_back(child);
  }
}

/// The same where the target's token at every node is known: choices [width], by node. Throws Error(bad_input) for a
/// wrong number of choices.
void walk_choices(const DraftTree& tree, std::span<const uint32_t> choices, AcceptedPath& path);

}  // namespace canopy
