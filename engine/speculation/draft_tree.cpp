#include "engine/speculation/draft_tree.h"

#include <string>

#include "engine/base/error.h"

namespace canopy {

void DraftTree::reset(uint32_t root_token) {
  nodes_.clear();
  nodes_.push_back({.token = root_token});
}

uint32_t DraftTree::add(uint32_t parent, uint32_t token, uint32_t rank, double log_q, double score) {
  if (parent >= width()) {
    throw bad_input("A draft tree has no node " + std::to_string(parent) + " to add a child to; its nodes are 0 to " +
                    std::to_string(drafted()) + ".");
  }
  nodes_.push_back({token, parent, nodes_[parent].depth + 1, rank, log_q, score});
  return drafted();
}

void DraftTree::cut(uint32_t width) {
  if (width == 0 || width > this->width()) {
    throw bad_input("A draft tree of width " + std::to_string(this->width()) + " cannot be cut to width " +
                    std::to_string(width) + "; allowed: 1 to " + std::to_string(this->width()) + ".");
  }
  nodes_.resize(width);
}

uint32_t DraftTree::child(uint32_t parent, uint32_t token) const {
  for (uint32_t node = parent + 1; node < width(); ++node) {
    if (nodes_[node].parent == parent && nodes_[node].token == token) return node;
  }
  return TreeNode::none;
}

}  // namespace canopy
