#pragma once
// One text that a model has read: its committed tokens, what the layers keep of them, and what a drafter keeps.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <vector>

#include "engine/compute/rows.h"
#include "engine/model/feature_drafter.h"
#include "engine/model/model.h"
#include "engine/speculation/ddtree.h"

namespace canopy {

/// Several may be resident in one model. They share its cache by pages (page_table.h): a fork has the same pages until
/// one of the two writes to them. Results of their passes and drafts are what each would have had alone. A round:
/// text() or tree(), a pass over it (Model::forward), then append() or commit() with what the pass gave, or nothing,
/// which leaves the sequence as it was. A sequence with a drafter keeps the features of its tokens, as far as their
/// passes left aux hidden states; the next token can be drafted where those of all tokens are there.
///
/// A sequence takes pages when a pass over it is prepared. Where too few are free, and nobody gives some up
/// (PagePool::set_reclaim), that throws out_of_memory, with the pages needed and available, and no sequence is changed;
/// a model has pages for ModelOptions::texts of its whole context and ModelOptions::spare_pages. Features that wait for
/// a draft are kept beside: the memory for those of a second sequence is allocated when features of two wait at a time.
/// Where what was to be copied to a page of its own is not, by an error of the device, the sequence ends before that
/// page. Where a model has recurrent layers, committing applies the accepted rows to the text's state, so that it must
/// come before the model's next pass, unless a whole line of rows is accepted. States to go back to are kept before the
/// last pass over a prompt, at the end of each turn and every StateHistory::kStep positions. Not thread-safe; model and
/// drafter must outlive it.
class Sequence {
 public:
  /// Empty. Without a drafter nothing is kept for one.
  explicit Sequence(Model& model, FeatureDrafter* drafter = nullptr);
  Sequence(const Sequence&) = delete;
  Sequence& operator=(const Sequence&) = delete;

  /// Another sequence with the same tokens and features, going its own way from here. It shares all pages; features
  /// that wait for a draft are copied. Throws out_of_memory, with needed and available bytes, where some wait and the
  /// device cannot hold them twice.
  std::unique_ptr<Sequence> fork() const;

  /// Position i holds the i-th.
  std::span<const uint32_t> tokens() const { return tokens_; }
  uint32_t length() const { return static_cast<uint32_t>(tokens_.size()); }
  /// Positions that it can have.
  uint32_t capacity() const { return model_.limits().context; }
  /// How many of its first tokens are the first of `ids`.
  uint32_t shared_with(std::span<const uint32_t> ids) const;
  /// Pages of the model's cache that it has, those that others have too included.
  uint32_t pages() const { return static_cast<uint32_t>(table_.pages().size()); }
  /// Keys (or values) of all its positions in a layer, f32 [length(), kv_heads, head_dim]: for tests and checks.
  std::vector<float> read_kv(uint32_t layer, bool values) const;

  /// Null without one.
  FeatureDrafter* drafter() const { return drafter_; }
  /// How many of its first tokens' features are kept: all of them or, after passes without aux hidden states, fewer;
  /// for a drafter that reads those of the last token alone all but that one count as kept. 0 without a drafter.
  uint32_t feature_length() const;
  /// How many of its first tokens are not read again where a reply reads more behind them and then asks the drafter:
  /// feature_length(), or all for a drafter that reads the features of the last token alone.
  uint32_t reusable_length() const;
  /// Features that the next draft injects into the drafter's cache.
  uint32_t backlog() const { return draft_state_ ? draft_state_->backlog() : 0; }
  /// Injects them now: it then holds nothing of the drafter but pages while others go on. Throws out_of_memory where
  /// there are none for them.
  void inject();
  /// Says which token comes next: where what is kept of the last features was made with another one, they are
  /// forgotten.
  void go_on_with(uint32_t token);
  /// Forgets the features of all positions from `length` on.
  void forget_features(uint32_t length);
  /// Pages of the drafter's cache that it has, as pages().
  uint32_t draft_pages() const { return draft_state_ ? draft_state_->pages() : 0; }
  /// Takes what it shares of the page that its next position stands on, in both caches, as a copy of its own now rather
  /// than when the next pass is prepared. Throws what that would.
  void own_last_page();

  /// A pass over tokens behind the committed ones: row i at position length() + i. What `head` names is wanted of the
  /// last row. Throws out_of_memory where there are no pages for them.
  ForwardInput text(std::span<const uint32_t> tokens, HeadOutput head = HeadOutput::none);
  /// A pass over a draft tree behind the committed tokens, row i of node i; see tree_input(). Throws out_of_memory
  /// where there are no pages for its longest path.
  ForwardInput tree(const DraftTree& tree, HeadOutput head, bool probabilities = false);

  /// A pass over the nodes of a draft tree from `first` on, which is at least 1, where those before were run by passes
  /// since the last commit. Its root is the last committed token. `head`, none or argmax, is wanted of all of them.
  /// Throws bad_input for a model with recurrent layers: of the states behind nodes none is there for a later pass.
  ForwardInput branches(const DraftTree& tree, uint32_t first, HeadOutput head);

  /// After a pass over text(tokens): they are committed, with their features where the pass left aux hidden states.
  /// False when it was stopped while features were kept: the tokens are committed all the same, and feature_length()
  /// says of how many there are features. The same where that throws out_of_memory, with needed and available bytes.
  /// Throws bad_input, and commits nothing, beyond capacity() and for a pass over anything else.
  bool append(std::span<const uint32_t> tokens, const ForwardOutput& pass, const std::stop_token& stop = {});

  /// The same, a token at a time: after each, with its features, then() is called, which may draft. False when that
  /// returned false or stop was requested; what was committed until then stays. Throws bad_input, too, where features
  /// of earlier tokens are missing or the pass left none.
  bool append_each(std::span<const uint32_t> tokens, const ForwardOutput& pass, const std::function<bool()>& then,
                   const std::stop_token& stop = {});

  /// After a pass over tree(tree): the path's nodes are committed in its order, with their features where the pass left
  /// aux hidden states, and the rest is forgotten. Nothing waits for the features: only a later draft needs them.
  /// Returns the milliseconds that were waited for the device, by its clock. Throws bad_input,
  /// and commits nothing, for nodes that are no path from the root, for a pass over anything else or one that is not
  /// the model's last, and beyond capacity().
  double commit(const DraftTree& tree, const AcceptedPath& path, const ForwardOutput& pass);

  /// After passes over branches(tree), and none over anything else since: the path's nodes behind the root, which must
  /// have been run, are committed in its order. Throws bad_input, and commits nothing, for nodes that are no path from
  /// the root and beyond capacity().
  void commit_branches(const DraftTree& tree, const AcceptedPath& path);

  /// Drafts behind `root`, which stands at position length(): FeatureDrafter::draft(). Throws bad_input without a
  /// drafter and where features are missing.
  std::optional<Draft> draft(uint32_t root, const DraftWish& wish, const std::stop_token& stop = {});
  std::optional<Draft> draft(uint32_t root, uint32_t depths, const std::stop_token& stop = {}) {
    return draft(root, DraftWish{depths}, stop);
  }

  /// Forgets all positions from `length` on; one that is longer than the sequence changes nothing. With recurrent
  /// layers it forgets those from reachable(length) on.
  void truncate(uint32_t length);
  /// The longest beginning of up to `length` tokens that it can be cut to: min(length, length()) but with recurrent
  /// layers, which go back to states that are kept.
  uint32_t reachable(uint32_t length) const;
  /// Takes over what states another sequence has kept of its tokens, all of which this one begins with.
  void adopt_states(const Sequence& beginning);
  /// Forgets a state of recurrent layers, where it has one, so that another sequence gets its place: one to go back to,
  /// or, where there are none, all of the text. False where that frees nothing.
  bool give_up_state();
  void clear() { truncate(0); }

  /// For measurements: so many tokens count as committed from now on, and features of them as there, the last `waiting`
  /// as waiting, whatever the caches hold. clear() it afterwards. Throws bad_input beyond capacity() or for more than
  /// can wait.
  void pretend(uint32_t length, uint32_t waiting);

 private:
  explicit Sequence(const Sequence* other);
  /// Pages of its own for so many positions behind the committed ones, as far as the capacity goes.
  void reserve(uint32_t positions);
  uint32_t slot_of(uint32_t position) const;
  bool has_features_of(const ForwardOutput& pass, uint32_t first) const;
  void skip_features();
  bool has_state_of(const ForwardOutput& pass, size_t rows) const;
  void require_last(const ForwardOutput& pass) const;
  double commit_states(std::span<const uint32_t> rows, const ForwardOutput& pass);
  /// What brings a path's K/V, of a tree whose root stands at `position`, to the places of the text.
  std::vector<KvMove> moves_of(const DraftTree& tree, const AcceptedPath& path, uint32_t position) const;
  void require_room(size_t tokens) const;
  void require_own(const ForwardOutput& pass, size_t rows) const;

  Model& model_;
  FeatureDrafter* drafter_;
  std::unique_ptr<DraftState> draft_state_;  // null without a drafter
  PageTable table_;
  std::optional<StateHistory> states_;  // where the model has recurrent layers
  bool in_round_ = false;               // the last commit was of a draft tree: a turn may end behind it
  std::vector<uint32_t> tokens_;
};

}  // namespace canopy
