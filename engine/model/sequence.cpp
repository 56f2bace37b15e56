#include "engine/model/sequence.h"

#include <algorithm>
#include <string>

#include "engine/base/error.h"
#include "engine/model/tree_rows.h"

namespace canopy {

Sequence::Sequence(Model& model) : model_(model), cache_(model.acquire_cache()) {}

Sequence::~Sequence() {
  model_.release_cache(cache_);
}

std::unique_ptr<Sequence> Sequence::fork() const {
  auto copy = std::make_unique<Sequence>(model_);
  model_.copy_kv(cache_, copy->cache_, length());
  copy->tokens_ = tokens_;
  return copy;
}

uint32_t Sequence::shared_with(std::span<const uint32_t> ids) const {
  const auto most = static_cast<std::ptrdiff_t>(std::min(ids.size(), tokens_.size()));
  return static_cast<uint32_t>(std::mismatch(ids.begin(), ids.begin() + most, tokens_.begin()).first - ids.begin());
}

ForwardInput Sequence::text(std::span<const uint32_t> tokens, HeadOutput head) const {
  ForwardInput input = text_input(tokens, length(), head);
  input.cache = cache_;
  return input;
}

ForwardInput Sequence::tree(const DraftTree& tree, HeadOutput head, bool probabilities) const {
  ForwardInput input = tree_input(tree, length(), model_.limits(), head, probabilities);
  input.cache = cache_;
  return input;
}

void Sequence::append(std::span<const uint32_t> tokens) {
  require_room(tokens.size());
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
}

void Sequence::commit(const DraftTree& tree, const AcceptedPath& path) {
  require_room(path.nodes.size());
  std::vector<KvMove> moves;
  for (uint32_t depth = 0; depth < path.nodes.size(); ++depth) {
    const uint32_t node = path.nodes[depth];
    const uint32_t parent = depth == 0 ? TreeNode::none : path.nodes[depth - 1];
    if (node >= tree.width() || tree[node].parent != parent) {
      throw bad_input("Node " + std::to_string(node) + " at depth " + std::to_string(depth) +
                      " of a path was to be committed; allowed: a path of the tree's " + std::to_string(tree.width()) +
                      " nodes from the root on.");
    }
    if (depth > 0) moves.push_back({slot_of_node(node, length(), capacity()), length() + depth});
  }
  model_.move_kv(moves, cache_);
  for (const uint32_t node : path.nodes) tokens_.push_back(tree[node].token);
}

void Sequence::truncate(uint32_t length) {
  if (length < tokens_.size()) tokens_.resize(length);
}

void Sequence::require_room(size_t tokens) const {
  if (tokens <= capacity() - length()) return;
  throw bad_input(std::to_string(tokens) + " tokens were to be committed behind " + std::to_string(length()) +
                  "; allowed: " + std::to_string(capacity()) + " in all.");
}

}  // namespace canopy
