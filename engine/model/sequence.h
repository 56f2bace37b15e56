#pragma once
// One text that a model has read: its committed tokens and what the layers keep of them.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/compute/rows.h"
#include "engine/model/model.h"
#include "engine/speculation/accept.h"
#include "engine/speculation/draft_tree.h"

namespace canopy {

/// Several may be resident in one model, each with a K/V cache of its own, drawn from the model's (Model::KvCache);
/// results of their passes are what each would have had alone. A round: text() or tree(), a pass over it
/// (Model::forward), then append() or commit(), or nothing, which leaves the sequence as it was.
///
/// The first sequence takes the cache that passes without a sequence use too: who runs such passes clears it. Not
/// thread-safe; the model must outlive it.
class Sequence {
 public:
  /// Empty. Throws out_of_memory where the device cannot hold another cache.
  explicit Sequence(Model& model);
  ~Sequence();
  Sequence(const Sequence&) = delete;
  Sequence& operator=(const Sequence&) = delete;

  /// Another sequence with the same tokens, going its own way from here; the state is copied through the host. Throws
  /// out_of_memory.
  std::unique_ptr<Sequence> fork() const;

  /// Position i holds the i-th.
  std::span<const uint32_t> tokens() const { return tokens_; }
  uint32_t length() const { return static_cast<uint32_t>(tokens_.size()); }
  /// Positions that it can have.
  uint32_t capacity() const { return model_.limits().context; }
  /// How many of its first tokens are the first of `ids`.
  uint32_t shared_with(std::span<const uint32_t> ids) const;
  /// Which of the model's caches its passes read and write.
  uint32_t cache() const { return cache_; }

  /// A pass over tokens behind the committed ones: row i at position length() + i. What `head` names is wanted of the
  /// last row.
  ForwardInput text(std::span<const uint32_t> tokens, HeadOutput head = HeadOutput::none) const;
  /// A pass over a draft tree behind the committed tokens, row i of node i; see tree_input(). The K/V of the root goes
  /// to its place in the text, where it stays whatever is accepted, that of other nodes into the slots of trees.
  ForwardInput tree(const DraftTree& tree, HeadOutput head, bool probabilities = false) const;

  /// After a pass over text(tokens): they are committed. Throws bad_input beyond capacity().
  void append(std::span<const uint32_t> tokens);

  /// After a pass over tree(tree): the path's nodes are committed in its order and the rest is forgotten. Throws
  /// bad_input, and commits nothing, for nodes that are no path from the root, and beyond capacity().
  void commit(const DraftTree& tree, const AcceptedPath& path);

  /// Forgets all positions from `length` on; one that is longer than the sequence changes nothing.
  void truncate(uint32_t length);
  void clear() { truncate(0); }

 private:
  void require_room(size_t tokens) const;

  Model& model_;
  uint32_t cache_;
  std::vector<uint32_t> tokens_;
};

}  // namespace canopy
