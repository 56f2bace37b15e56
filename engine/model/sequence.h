#pragma once
// One text that a model has read: its committed tokens, what the layers keep of them, and what a drafter keeps.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <vector>

#include "engine/compute/rows.h"
#include "engine/model/drafter.h"
#include "engine/model/model.h"
#include "engine/speculation/accept.h"
#include "engine/speculation/draft_tree.h"

namespace canopy {

/// Several may be resident in one model, each with caches of its own, drawn from the model's and the drafter's; results
/// of their passes and drafts are what each would have had alone. A round: text() or tree(), a pass over it
/// (Model::forward), then append() or commit() with what the pass gave, or nothing, which leaves the sequence as it
/// was. A sequence with a drafter keeps the features of its tokens, as far as their passes left aux hidden states; the
/// next token can be drafted where those of all tokens are there.
///
/// The first sequence takes the caches that were planned and allocated with model and drafter; passes without a
/// sequence use the model's too, and who runs such passes clears it. Each further one needs MemoryPlan::cache bytes
/// more, and the drafter's part, which are allocated when it is made, if they are available then. Not thread-safe;
/// model and drafter must outlive it.
class Sequence {
 public:
  /// Empty. Without a drafter nothing is kept for one. Throws out_of_memory, with needed and available bytes, where the
  /// device cannot hold another.
  explicit Sequence(Model& model, Drafter* drafter = nullptr);
  ~Sequence();
  Sequence(const Sequence&) = delete;
  Sequence& operator=(const Sequence&) = delete;

  /// Another sequence with the same tokens and features, going its own way from here; the state is copied through the
  /// host. Throws out_of_memory.
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

  /// Null without one.
  Drafter* drafter() const { return drafter_; }
  /// How many of its first tokens' features are kept: all of them or, after passes without aux hidden states, fewer. 0
  /// without a drafter.
  uint32_t feature_length() const { return draft_state_ ? draft_state_->known() : 0; }
  /// Features that the next draft injects into the drafter's cache.
  uint32_t backlog() const { return draft_state_ ? draft_state_->backlog() : 0; }

  /// A pass over tokens behind the committed ones: row i at position length() + i. What `head` names is wanted of the
  /// last row.
  ForwardInput text(std::span<const uint32_t> tokens, HeadOutput head = HeadOutput::none) const;
  /// A pass over a draft tree behind the committed tokens, row i of node i; see tree_input(). The K/V of the root goes
  /// to its place in the text, where it stays whatever is accepted, that of other nodes into the slots of trees.
  ForwardInput tree(const DraftTree& tree, HeadOutput head, bool probabilities = false) const;

  /// After a pass over text(tokens): they are committed, with their features where the pass left aux hidden states.
  /// False when it was stopped while features were kept: the tokens are committed all the same, and feature_length()
  /// says of how many there are features. Throws bad_input, and commits nothing, beyond capacity() and for a pass over
  /// anything else.
  bool append(std::span<const uint32_t> tokens, const ForwardOutput& pass, const std::stop_token& stop = {});

  /// After a pass over tree(tree): the path's nodes are committed in its order, with their features where the pass left
  /// aux hidden states, and the rest is forgotten. Nothing waits for the features of a tree of the root alone: only a
  /// later draft needs them. Returns the milliseconds that were waited for the device, by its clock. Throws bad_input,
  /// and commits nothing, for nodes that are no path from the root, for a pass over anything else, and beyond
  /// capacity().
  double commit(const DraftTree& tree, const AcceptedPath& path, const ForwardOutput& pass);

  /// Drafts behind `root`, which stands at position length(): Drafter::draft(). Throws bad_input without a drafter and
  /// where features are missing.
  std::optional<Draft> draft(uint32_t root, uint32_t depths, const std::stop_token& stop = {});

  /// Forgets all positions from `length` on; one that is longer than the sequence changes nothing.
  void truncate(uint32_t length);
  void clear() { truncate(0); }

  /// For measurements: so many tokens count as committed from now on, and features of them as there, the last `waiting`
  /// as waiting, whatever the caches hold. clear() it afterwards. Throws bad_input beyond capacity() or for more than
  /// can wait.
  void pretend(uint32_t length, uint32_t waiting);

 private:
  bool has_features_of(const ForwardOutput& pass) const;
  void require_room(size_t tokens) const;
  void require_own(const ForwardOutput& pass, size_t rows) const;

  Model& model_;
  Drafter* drafter_;
  std::unique_ptr<DraftState> draft_state_;  // null without a drafter
  uint32_t cache_;
  std::vector<uint32_t> tokens_;
};

}  // namespace canopy
