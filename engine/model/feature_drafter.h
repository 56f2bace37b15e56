#pragma once
// What drafts from features of a text, which its target leaves in every pass: what it keeps of one text, how features
// get there, and the memory for both. Drafters of a block (drafter.h) and heads that draft one token after another
// (step_head.h) are such.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/compute/device.h"
#include "engine/model/forward.h"
#include "engine/model/kv_cache.h"
#include "engine/model/load_plan.h"
#include "engine/model/page_table.h"
#include "engine/model/pass_buffers.h"
#include "engine/speculation/draft_source.h"

namespace canopy {

class Drafter;
class FeatureDrafter;
class Model;

// The state that a drafter keeps of one text.

/// Features of a text's first known() positions: of the first of them as keys and values in the drafter's layers, in
/// pages of a cache that all texts share; of the others as they came, waiting for the next draft, which injects them on
/// its way. Part of a Sequence; not thread-safe; the drafter must outlive it.
class DraftState {
 public:
  /// Of an empty text, whose tokens are those of `text` at each call; null: the drafter needs none. While features
  /// wait, it holds one of the drafter's memories for such: the first is part of its memory plan, others are allocated
  /// when all are held, and stay the drafter's. Where another does not fit, what appends features throws
  /// out_of_memory, with needed and available bytes.
  /// `target_pages`: where the target's cache has its positions, likewise.
  explicit DraftState(FeatureDrafter& drafter, const std::vector<uint32_t>* text = nullptr,
                      const PageTable* target_pages = nullptr);
  ~DraftState();
  DraftState(const DraftState&) = delete;
  DraftState& operator=(const DraftState&) = delete;

  uint32_t known() const { return injected_ + waiting_; }
  /// Features that the next draft reads first.
  uint32_t backlog() const { return waiting_ - read_; }
  /// Whether the feature of the last known position is at hand, not only what a drafter made of it.
  bool has_last() const { return waiting_ > 0; }
  /// Of the drafter's cache.
  uint32_t pages() const { return static_cast<uint32_t>(table_.pages().size()); }

  /// Forgets all positions from `positions` on, while the text still has their tokens.
  void truncate(uint32_t positions);
  /// Counts the features of positions before `position` as there, of which nothing is kept: of a drafter that reads
  /// those of the last position alone.
  void skip_to(uint32_t position);
  /// Whether what is kept goes on with this token behind the known positions: keys and values of the last of them may
  /// have been made with the token that followed then.
  bool goes_on_with(uint32_t token) const;

  /// For measurements: so many positions count as injected and waiting from now on, whatever is kept of them. Throws
  /// bad_input beyond the context or for more than can wait.
  void pretend(uint32_t injected, uint32_t waiting);

  /// The same features in a state of their own, of a text that has the same tokens: it shares pages, and what waits is
  /// copied. Throws out_of_memory where something waits.
  std::unique_ptr<DraftState> fork(const std::vector<uint32_t>* text = nullptr,
                                   const PageTable* target_pages = nullptr) const;

 private:
  friend class FeatureDrafter;
  friend class Drafter;
  friend class AssistantHead;
  friend class StepHead;

  DraftState(FeatureDrafter& drafter, const PageTable& table, const std::vector<uint32_t>* text,
             const PageTable* target_pages);
  void hold_store();
  void release_store();
  /// What waits goes to the host, and the store to others, until features are appended or drafted from.
  void park();
  /// The row of the store that the i-th of those that wait is in.
  uint32_t store_row(uint32_t i) const;
  /// The first `count` of those that wait are in the cache.
  void end_injection(uint32_t count);

  static constexpr uint32_t kNone = ~0u;

  FeatureDrafter& drafter_;
  const std::vector<uint32_t>* text_;
  const PageTable* target_pages_;
  uint32_t store_ = kNone;  // which of the drafter's memories for features
  PageTable table_;         // of the drafter's cache
  uint32_t injected_ = 0;
  uint32_t waiting_ = 0;
  uint32_t read_ = 0;       // of those that wait: a draft has read them, and another may again
  uint32_t first_row_ = 0;  // of the store: where the first of those that wait is; the others follow, round and round
  uint32_t next_ = kNone;   // the token that followed the last injected position, where that was cut off
  std::vector<float> parked_;  // what waits, while no store is held
  uint64_t number_;            // among the drafter's
};

/// The result of a draft. Tokens that the drafter's head is not over have probability 0.
struct Draft : BlockDraft {
  double device_ms = 0;  // its passes by the device's clock, 0 where it has none

  /// Of a block, all logits of a depth, [Drafter::drafted_tokens()], of the tokens Drafter::token_at(0 ...): for a tree
  /// that wants more candidates than there are. They are still on the device and must be read before the drafter's next
  /// draft. Throws bad_input afterwards, and for other depths.
  std::vector<float> logits_at(uint32_t depth) const;

  Drafter* drafter = nullptr;  // whose draft it is, which must outlive it; null: not of a block
  uint64_t number = 0;         // among the drafter's
};

/// What it keeps of a text is the text's own (DraftState), so that it drafts for several in turn. Not thread-safe;
/// device and target must outlive it.
class FeatureDrafter {
 public:
  virtual ~FeatureDrafter();
  FeatureDrafter(const FeatureDrafter&) = delete;
  FeatureDrafter& operator=(const FeatureDrafter&) = delete;

  /// The bit of what it drafts (kFromModels).
  virtual DraftSources source() const = 0;
  /// Whether it drafts token by token: further ones cost a pass each.
  virtual bool by_token() const = 0;
  /// Whether the features of all positions make a draft, not those of the last one alone.
  virtual bool reads_all_features() const { return true; }
  /// Paths that one pass can go on with, where it drafts token by token.
  virtual uint32_t most_beams() const { return 1; }
  /// Tokens of the longest draft.
  virtual uint32_t max_depth() const = 0;
  /// Tokens that are drafted at all: the target's vocabulary, or a part of it.
  virtual uint32_t drafted_tokens() const = 0;
  /// Sizes of its own layers.
  virtual const ModelConfig& layers_config() const = 0;
  /// Of a block drafter what it is called (DrafterConfig::kind); empty for others.
  virtual std::string_view kind() const { return {}; }
  /// What a calibration is valid for besides its name.
  virtual std::string identity() const = 0;

  uint64_t device_bytes() const { return device_bytes_; }
  /// Positions that a text can have.
  uint32_t context() const;
  /// Features of one text that can wait.
  static constexpr uint32_t most_waiting() { return 128; }

  /// Appends the features of rows of the target's last pass, which kept its aux hidden states: of positions
  /// text.known() ... in this order. False when stop was requested; text.known() then counts
  /// those that were appended.
  bool append_features(DraftState& text, std::span<const uint32_t> rows, const std::stop_token& stop = {});

  /// The same of a round's rows, at most most_waiting(), without waiting for what only a later draft needs.
  void append_features_soon(DraftState& text, std::span<const uint32_t> rows);

  /// Injects the features that wait, as the next draft would, but for those that another token must follow first.
  /// False when stop was requested; they wait on then. Throws out_of_memory where there are no pages for them.
  virtual bool inject(DraftState& text, const std::stop_token& stop = {}) = 0;
  /// The same; the text then holds nothing of the drafter but pages.
  bool settle(DraftState& text);

  /// Pages of its own for all known positions, as the next draft takes them. Throws out_of_memory where there are none.
  void reserve(DraftState& text) { reserve(text, text.injected_); }

  /// Drafts behind `root`, which stands at position text.known(). wish.depths is 1 ... max_depth(); nothing when stop
  /// was requested. Keys and values of what was drafted are gone afterwards.
  virtual std::optional<Draft> draft(DraftState& text, uint32_t root, const DraftWish& wish,
                                     const std::stop_token& stop = {}) = 0;
  std::optional<Draft> draft(DraftState& text, uint32_t root, uint32_t depths, const std::stop_token& stop = {}) {
    return draft(text, root, DraftWish{depths}, stop);
  }

  /// Recordings made since the start: a pass that makes one takes far longer than it does from then on.
  uint64_t recordings() const { return made_recordings() + copies_.made(); }

  /// The pages of its cache; texts take them from here.
  PagePool& pages() { return pages_; }

 protected:
  /// feature_width: floats of a feature.
  FeatureDrafter(Model& target, const ModelLimits& limits, uint32_t feature_width);
  /// Memory for its own layers, K/V included where they have any, beside weights of so many bytes and `further` bytes
  /// of the drafter's kind. Throws out_of_memory with needed and available bytes. `memory` is that of a model that the
  /// pair replaces; null: none.
  void allocate(const ModelConfig& layers, uint64_t weight_bytes, uint64_t further, ReclaimableMemory* memory);
  virtual uint64_t made_recordings() const = 0;
  /// Pages of its own for the known positions from `first` on, which are about to be written.
  void reserve(DraftState& text, uint32_t first);

  Device& device_;
  Model& target_;
  const ModelLimits limits_;
  const uint32_t feature_width_;
  uint64_t device_bytes_ = 0;
  // [most_waiting(), feature_width] each; the first is part of the memory plan, further ones come with further texts
  std::vector<std::unique_ptr<Buffer>> stores_;
  std::unique_ptr<KvCaches> cache_;  // null where its layers have no K/V
  PagePool pages_;                   // of it
  PassBuffers buffers_;
  // What is uploaded and read in each draft; kept, so that drafts allocate nothing.
  std::vector<std::byte> upload_, download_;

 private:
  friend class DraftState;

  bool copy_features(DraftState& text, std::span<const uint32_t> rows, const std::stop_token& stop);
  /// Writes the moves and returns the copy's commands, which are still to be run. Throws bad_input where the context
  /// ends before the last row.
  Commands& prepare_copies(DraftState& text, std::span<const uint32_t> rows);
  Commands& copy_commands(uint32_t store, uint32_t count);
  uint64_t store_bytes() const { return uint64_t{most_waiting()} * feature_width_ * sizeof(float); }

  // Of DraftState.
  uint32_t acquire_store();
  void release_store(uint32_t store) { taken_[store] = false; }

  std::vector<bool> taken_;  // [stores_] by a text
  std::unique_ptr<KvMover> mover_;
  std::unique_ptr<Buffer>
      feature_moves_;                   // uint32 [most_waiting(), 2]: row of the target's aux_hidden_states, of a store
  std::vector<uint32_t> feature_rows_;  // of the moves
  Recordings<std::pair<uint32_t, uint32_t>> copies_;  // by store and number of rows
  uint64_t states_ = 0;                               // of texts, that were made
};

}  // namespace canopy
