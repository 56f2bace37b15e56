#pragma once
// A DFlash drafter on a device (design.md, section 2, step 1): one pass drafts a whole block behind the root, from the
// features, which are the aux hidden states that the target left of the committed text.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <vector>

#include "engine/compute/device.h"
#include "engine/format/drafter_file.h"
#include "engine/model/drafter_weights.h"
#include "engine/model/forward.h"
#include "engine/model/model.h"
#include "engine/model/pass_buffers.h"
#include "engine/model/recordings.h"

namespace canopy {

struct DrafterOptions {
  CacheType cache_type = CacheType::f16;
  LoadCallbacks callbacks;
  ReclaimableMemory* memory = nullptr;  // of a model that target and drafter replace; null: none
};

class Drafter;

/// What one pass drafted: the most probable tokens of each depth, 1 ... depths.
struct Draft {
  uint32_t depths = 0;
  uint32_t candidates = 0;         // of each depth
  std::vector<uint32_t> tokens;    // [depths, candidates]
  std::vector<float> logits;       // [depths, candidates] largest first, ties by the lowest token
  std::vector<float> log_sum_exp;  // [depths] over the whole vocabulary
  double device_ms = 0;            // the pass by the device's clock, 0 where it has none

  /// All logits of a depth, [vocab]: for a tree that wants more candidates than there are. They are still on the device
  /// and must be read before the drafter's next draft. Throws bad_input afterwards, and for other depths.
  std::vector<float> logits_at(uint32_t depth) const;

  Drafter* drafter = nullptr;  // whose draft it is; must outlive it
  uint64_t number = 0;         // among the drafter's
};

/// Knows features of a text's first known() positions: the first of them as keys and values in its cache, the others
/// waiting to be injected, which the next draft does on its way. Not thread-safe; device and target must outlive it.
class Drafter {
 public:
  /// The target must have been loaded with the drafter's aux layers; check_pair() has passed. Throws bad_input,
  /// out_of_memory, cancelled or device_lost.
  static std::unique_ptr<Drafter> load(const DrafterFile& file, Model& target, const DrafterOptions& options);
  ~Drafter();

  const DrafterConfig& config() const { return config_; }
  uint32_t max_depth() const { return config_.block_size - 1; }
  uint64_t device_bytes() const { return device_bytes_; }

  uint32_t known() const { return injected_ + waiting_; }
  uint32_t backlog() const { return waiting_; }

  /// Forgets all positions from `positions` on.
  void truncate(uint32_t positions);

  /// For measurements: so many positions count as injected and waiting from now on, whatever the cache holds of them.
  /// Throws bad_input beyond the context or for more than can wait.
  void pretend(uint32_t injected, uint32_t waiting);

  /// Appends the features of rows of the target's last pass, which kept its aux hidden states: of positions known() ...
  /// in this order. False when stop was requested; what is known is then less than asked for, but right.
  bool append_features(std::span<const uint32_t> rows, const std::stop_token& stop = {});

  /// The same of one row, for rounds that drafted nothing: they should not wait for what only a later draft needs.
  void append_features_soon(uint32_t row);

  /// Drafts behind `root`, which stands at position known(). depths is 1 ... max_depth(); nothing when stop was
  /// requested. The block's keys and values are gone afterwards.
  std::optional<Draft> draft(uint32_t root, uint32_t depths, const std::stop_token& stop = {});

  /// Recordings made since the start: a pass that makes one takes far longer than it does from then on.
  uint64_t recordings() const { return recordings_.made() + copies_.made(); }

  /// Output of the drafter's last norm before the head for the rows of the last draft, [block, H]: for tests.
  std::vector<float> hidden_states();

 private:
  friend struct Draft;

  /// What one recording depends on.
  struct Shape {
    uint32_t injected = 0;  // features, rounded up
    uint32_t depths = 0;    // 0: only inject
    uint32_t max_positions = 0;
    auto operator<=>(const Shape&) const = default;
  };

  Drafter(const DrafterFile& file, const DrafterPlan& plan, Model& target, const DrafterOptions& options);
  void make_parts();
  bool copy_features(std::span<const uint32_t> rows, const std::stop_token& stop);
  /// Everything but running it; throws bad_input where the context ends before the last row.
  Commands& prepare_copies(std::span<const uint32_t> rows);
  bool inject(const std::stop_token& stop);
  std::vector<Row> injected_rows(uint32_t padded) const;
  void upload(uint32_t root, uint32_t padded);
  Draft read_results(uint32_t depths);
  /// Null once stop was requested: a recording may compile kernels.
  Commands* commands_for(const Shape& shape, const std::stop_token& stop);
  Commands& copy_commands(uint32_t count);
  void record_injection(Recorder& record, uint32_t count);
  void record_block(Recorder& record, const Shape& shape);
  ForwardContext context() const;

  Device& device_;
  Model& target_;
  DrafterConfig config_;
  ModelLimits limits_;
  std::vector<LayerSpec> layers_;  // what each computes
  uint64_t device_bytes_ = 0;
  uint32_t candidates_ = 0;
  DrafterWeights weights_;
  std::vector<std::unique_ptr<KvLayer>> cache_;
  PassBuffers buffers_;
  // Features and their way into the cache. I is the most that wait.
  std::unique_ptr<Buffer> features_;       // [I, aux layers * H]
  std::unique_ptr<Buffer> feature_moves_;  // uint32 [I, 2]: row of the target's aux_hidden_states, row of features_
  std::unique_ptr<Buffer> projected_;      // [I, H]
  std::unique_ptr<Activations> feature_activations_;  // [I, aux layers * H]
  std::unique_ptr<Activations> context_activations_;  // [I, H]: hidden_norm(fc(features))
  // Of each draft one upload and one read: parts of buffers_.input and of results_. The rows that are injected come
  // last in the input: how many there are changes from draft to draft.
  PassParts parts_;                        // of the block
  std::unique_ptr<Buffer> injected_rows_;  // Row [I]
  std::unique_ptr<Buffer> results_;
  std::unique_ptr<Buffer> tokens_, logits_, log_sum_exp_;  // as in Draft
  std::vector<std::byte> upload_;
  Recordings<Shape> recordings_;
  Recordings<uint32_t> copies_;  // by the number of rows
  uint32_t injected_ = 0;
  uint32_t waiting_ = 0;
  uint64_t drafts_ = 0;  // that were begun
};

}  // namespace canopy
