#pragma once
// A DFlash drafter on a device (docs/architecture.md, "Rounds"): its weights, what it keeps of one text, and its
// pass, which drafts a whole block behind the root from the aux hidden states that the target left of the committed
// text.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <utility>
#include <vector>

#include "engine/compute/device.h"
#include "engine/format/drafter_file.h"
#include "engine/model/forward.h"
#include "engine/model/kv_cache.h"
#include "engine/model/model.h"
#include "engine/model/page_table.h"
#include "engine/model/pass_buffers.h"
#include "engine/model/weight_plan.h"
#include "engine/model/weights.h"
#include "engine/speculation/draft_source.h"

namespace canopy {

// The weights of a DFlash drafter on a device. The embedding is the target's and is not here, and neither is the head
// where it is the target's whole one.

struct DrafterPlan {
  MatrixPlan fc;                  // [H, aux layers * H]
  std::vector<LayerPlan> layers;  // qkv: q, then k and v, stacked where their types agree: features need no q
  std::vector<MatrixPlan> head;   // [n, H] over draft_token_ids, the drafter's own or rows of the target's; else empty
  uint64_t file_bytes = 0;        // of the matrices
  uint64_t device_bytes = 0;      // matrices and norms
};

struct DrafterWeights {
  std::unique_ptr<Weight> fc;           // [H, aux layers * H]
  std::unique_ptr<Buffer> hidden_norm;  // [H]
  Weights body;                         // layers, output_norm and, where the plan has one, head; no embedding
};

// The state that a drafter keeps of one text.

class Drafter;

/// Features of a text's first known() positions: of the first of them as keys and values in the drafter's layers, in
/// pages of a cache that all texts share; of the others as they came, waiting for the next draft, which injects them on
/// its way. Part of a Sequence; not thread-safe; the drafter must outlive it.
class DraftState {
 public:
  /// Of an empty text. While features wait, it holds one of the drafter's memories for such: the first is part of its
  /// memory plan, others are allocated when all are held, and stay the drafter's. Where another does not fit, what
  /// appends features throws out_of_memory, with needed and available bytes.
  explicit DraftState(Drafter& drafter);
  ~DraftState();
  DraftState(const DraftState&) = delete;
  DraftState& operator=(const DraftState&) = delete;

  uint32_t known() const { return injected_ + waiting_; }
  uint32_t backlog() const { return waiting_; }
  /// Of the drafter's cache.
  uint32_t pages() const { return static_cast<uint32_t>(table_.pages().size()); }

  /// Forgets all positions from `positions` on.
  void truncate(uint32_t positions);

  /// For measurements: so many positions count as injected and waiting from now on, whatever is kept of them. Throws
  /// bad_input beyond the context or for more than can wait.
  void pretend(uint32_t injected, uint32_t waiting);

  /// The same features in a state of their own: it shares pages, and what waits is copied. Throws out_of_memory where
  /// something waits.
  std::unique_ptr<DraftState> fork() const;

 private:
  friend class Drafter;

  DraftState(Drafter& drafter, const PageTable& table);
  void hold_store();
  /// Nothing may wait.
  void release_store();

  static constexpr uint32_t kNone = ~0u;

  Drafter& drafter_;
  uint32_t store_ = kNone;  // which of the drafter's memories for features
  PageTable table_;         // of the drafter's cache
  uint32_t injected_ = 0;
  uint32_t waiting_ = 0;
};

// The drafter itself. Its pass goes by the features of the text: the aux hidden states that the target left of it.

struct DrafterOptions {
  CacheType cache_type = CacheType::f16;  // of the target's; f16 where the drafter's heads do not fit its blocks
  LoadCallbacks callbacks;
  ReclaimableMemory* memory = nullptr;  // of a model that target and drafter replace; null: none
  /// The target's file, which is not needed afterwards: required by drafters that draft with some rows of its head.
  const ModelFile* target_file = nullptr;
};

/// The result of a drafter pass. Tokens that the drafter's head is not over have probability 0.
struct Draft : BlockDraft {
  double device_ms = 0;  // the pass by the device's clock, 0 where it has none

  /// All logits of a depth, [Drafter::drafted_tokens()], of the tokens Drafter::token_at(0 ...): for a tree that wants
  /// more candidates than there are. They are still on the device and must be read before the drafter's next draft.
  /// Throws bad_input afterwards, and for other depths.
  std::vector<float> logits_at(uint32_t depth) const;

  Drafter* drafter = nullptr;  // whose draft it is; must outlive it
  uint64_t number = 0;         // among the drafter's
};

/// Weights and recorded passes; what it keeps of a text is the text's own (DraftState), so that it drafts for several
/// in turn. Not thread-safe; device and target must outlive it.
class Drafter {
 public:
  /// The target must have been loaded with the drafter's aux layers; check_pair() has passed. Throws bad_input,
  /// out_of_memory, cancelled or device_lost.
  static std::unique_ptr<Drafter> load(const DrafterFile& file, Model& target, const DrafterOptions& options);
  ~Drafter();

  const DrafterConfig& config() const { return config_; }
  uint32_t max_depth() const { return config_.block_size - 1; }
  /// How many tokens its head is over: the target's vocabulary, or the part that its file names.
  uint32_t drafted_tokens() const { return head().rows(); }
  /// The id of one of them. They ascend.
  uint32_t token_at(uint32_t place) const { return weights_.body.output ? config_.draft_token_ids[place] : place; }
  uint64_t device_bytes() const { return device_bytes_; }

  /// Positions that a text can have.
  uint32_t context() const { return target_.limits().context; }
  /// Features of one text that can wait.
  static constexpr uint32_t most_waiting() { return 128; }

  /// Appends the features of rows of the target's last pass, which kept its aux hidden states: of positions
  /// text.known() ... in this order. False when stop was requested; text.known() then counts
  /// those that were appended.
  bool append_features(DraftState& text, std::span<const uint32_t> rows, const std::stop_token& stop = {});

  /// The same of a round's rows, at most most_waiting(), without waiting for what only a later draft needs.
  void append_features_soon(DraftState& text, std::span<const uint32_t> rows);

  /// Injects the features that wait, as the next draft would: the text then holds nothing of the drafter but pages.
  /// False when stop was requested; they wait on then. Throws out_of_memory where there are no pages for them.
  bool inject(DraftState& text, const std::stop_token& stop = {});

  /// Pages of its own for all known positions, as the next draft takes them. Throws out_of_memory where there are none.
  void reserve(DraftState& text);

  /// Drafts behind `root`, which stands at position text.known(). depths is 1 ... max_depth(); nothing when stop was
  /// requested. The block's keys and values are gone afterwards.
  std::optional<Draft> draft(DraftState& text, uint32_t root, uint32_t depths, const std::stop_token& stop = {});

  /// Recordings made since the start: a pass that makes one takes far longer than it does from then on.
  uint64_t recordings() const { return recordings_.made() + copies_.made(); }

  /// The pages of its cache; texts take them from here.
  PagePool& pages() { return pages_; }

  /// Output of the drafter's last norm before the head for the rows of the last draft, [block, H]: for tests.
  std::vector<float> hidden_states();

 private:
  friend struct Draft;
  friend class DraftState;

  /// The key of a recording.
  struct Shape {
    uint32_t injected = 0;  // features, rounded up
    uint32_t depths = 0;    // 0: only inject
    uint32_t max_positions = 0;
    uint32_t store = 0;
    auto operator<=>(const Shape&) const = default;
  };

  Drafter(const DrafterFile& file, const DrafterPlan& plan, Model& target, const DrafterOptions& options);
  void make_parts();
  bool copy_features(DraftState& text, std::span<const uint32_t> rows, const std::stop_token& stop);
  /// Writes the moves and returns the copy's commands, which are still to be run. Throws bad_input where the context
  /// ends before the last row.
  Commands& prepare_copies(DraftState& text, std::span<const uint32_t> rows);
  /// Of those that are injected, row i; behind those that wait come some that pad them.
  Row injected_row(const DraftState& text, uint32_t i) const;
  void upload(const DraftState& text, uint32_t root, uint32_t padded);
  Draft read_results(uint32_t depths);
  /// Null once stop was requested: a recording may compile kernels.
  Commands* commands_for(const Shape& shape, const std::stop_token& stop);
  Commands& copy_commands(uint32_t store, uint32_t count);
  void record_injection(Recorder& record, const Shape& shape);
  void record_block(Recorder& record, const Shape& shape);
  ForwardContext forward_context() const;
  const Weight& head() const { return weights_.body.output ? *weights_.body.output : target_.head(); }

  /// What waited is in the cache.
  void end_injection(DraftState& text);

  // Of DraftState.
  std::unique_ptr<Buffer> allocate_features();
  uint32_t acquire_store();
  void release_store(uint32_t store) { taken_[store] = false; }
  /// Copies `waiting` features from one store to another.
  void copy_waiting(uint32_t from, uint32_t to, uint32_t waiting);

  Device& device_;
  Model& target_;
  DrafterConfig config_;
  ModelLimits limits_;
  std::vector<LayerSpec> layers_;  // what each computes
  uint64_t device_bytes_ = 0;
  uint32_t candidates_ = 0;
  DrafterWeights weights_;
  // [most_waiting(), aux layers * H] each; the first is part of the memory plan, further ones come with further texts
  std::vector<std::unique_ptr<Buffer>> stores_;
  std::vector<bool> taken_;   // [stores_] by a text
  uint64_t store_bytes_ = 0;  // of one
  std::unique_ptr<KvCaches> cache_;
  PagePool pages_;  // of it
  PassBuffers buffers_;
  std::unique_ptr<KvMover> mover_;
  // Features on their way into a text's cache. I is most_waiting().
  std::unique_ptr<Buffer>
      feature_moves_;  // uint32 [I, 2]: row of the target's aux_hidden_states, row of the text's features
  std::unique_ptr<Buffer> projected_;                 // [I, H]
  std::unique_ptr<Activations> feature_activations_;  // [I, aux layers * H]
  std::unique_ptr<Activations> context_activations_;  // [I, H]: hidden_norm(fc(features))
  // Of each draft one upload and one read: parts of buffers_.input and of results_. The rows that are injected come
  // last in the input: how many there are changes from draft to draft.
  PassParts parts_;                        // of the block
  std::unique_ptr<Buffer> injected_rows_;  // Row [I]
  std::unique_ptr<Buffer> results_;
  std::unique_ptr<Buffer> tokens_, logits_, log_sum_exp_;  // as in Draft
  // What is uploaded and read in each draft; kept, so that drafts allocate nothing.
  std::vector<std::byte> upload_, download_;
  std::vector<uint32_t> feature_rows_;  // of the moves
  std::vector<uint32_t> block_tokens_;
  RowBatch block_rows_;
  Recordings<Shape> recordings_;
  Recordings<std::pair<uint32_t, uint32_t>> copies_;  // by store and number of rows
  uint64_t drafts_ = 0;                               // that were begun
};

}  // namespace canopy
