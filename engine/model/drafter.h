#pragma once
// A DFlash drafter, or one of its relatives, on a device (docs/architecture.md, "Rounds"): its weights and its pass,
// which drafts a whole block behind the root from the aux hidden states that the target left of the committed text.

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
#include "engine/model/block_places.h"
#include "engine/model/candidate_selector.h"
#include "engine/model/feature_drafter.h"
#include "engine/model/forward.h"
#include "engine/model/markov_head.h"
#include "engine/model/model.h"
#include "engine/model/weight_plan.h"
#include "engine/model/weights.h"
#include "engine/speculation/beam_draft.h"
#include "engine/speculation/draft_source.h"

namespace canopy {

// The weights of a DFlash drafter on a device. The embedding is the target's and is not here, and neither is the head
// where it is the target's whole one.

struct DrafterPlan {
  MatrixPlan fc;                   // [H, aux layers * H]
  std::vector<LayerPlan> layers;   // qkv: q, then k and v, stacked where their types agree: features need no q
  std::vector<MatrixPlan> head;    // [n, H] over draft_token_ids, the drafter's own or rows of the target's; else empty
  std::vector<MarkovPlan> markov;  // one or none
  std::vector<MatrixPlan> conv;    // of each layer two, attention's and feed-forward's, which make kernels; or none
  std::vector<MatrixPlan> selector_hidden;  // [R, H], one or none
  uint64_t file_bytes = 0;                  // of the matrices
  uint64_t device_bytes = 0;                // matrices and norms
};

struct DrafterWeights {
  std::unique_ptr<Weight> fc;                   // [H, aux layers * H]
  std::unique_ptr<Buffer> hidden_norm;          // [H]
  Weights body;                                 // layers, output_norm and, where the plan has one, head; no embedding
  std::unique_ptr<MarkovHead> markov;           // null where the drafter has none
  std::unique_ptr<CandidateSelector> selector;  // likewise
};

// The drafter itself. Its pass goes by the features of the text: the aux hidden states that the target left of it.

struct DrafterOptions {
  CacheType cache_type = CacheType::f16;  // of the target's; f16 where the drafter's heads do not fit its blocks
  LoadCallbacks callbacks;
  ReclaimableMemory* memory = nullptr;  // of a model that target and drafter replace; null: none
  /// The target's file, which is not needed afterwards: required by drafters that draft with some rows of its head.
  const ModelFile* target_file = nullptr;
};

/// Weights and recorded passes. With a Markov head or a selector a draft has lists behind paths (draft_paths): the
/// block's pass, then short ones over rows of the head's tables, or what the host makes of the selector's.
class Drafter final : public FeatureDrafter, private NodeRunner {
 public:
  /// The target must have been loaded with the drafter's aux layers; check_pair() has passed. Throws bad_input,
  /// out_of_memory, cancelled or device_lost.
  static std::unique_ptr<Drafter> load(const DrafterFile& file, Model& target, const DrafterOptions& options);
  ~Drafter() override;

  const DrafterConfig& config() const { return config_; }
  DraftSources source() const override { return kFromDflash; }
  bool by_token() const override { return false; }
  uint32_t max_depth() const override { return config_.depths(); }
  /// How many tokens its head is over: the target's vocabulary, or the part that its file names.
  uint32_t drafted_tokens() const override { return head().rows(); }
  const ModelConfig& layers_config() const override { return config_.transformer; }
  std::string_view kind() const override { return config_.kind(); }
  std::string identity() const override;
  /// The id of one of them. They ascend.
  uint32_t token_at(uint32_t place) const { return weights_.body.output ? config_.draft_token_ids[place] : place; }

  bool inject(DraftState& text, const std::stop_token& stop = {}) override;
  using FeatureDrafter::draft;
  /// Of wish.depths tokens, whatever they are worth; with a Markov head or a selector as deep as wish.nodes go.
  std::optional<Draft> draft(DraftState& text, uint32_t root, const DraftWish& wish,
                             const std::stop_token& stop = {}) override;

  /// Output of the drafter's last norm before the head for the rows of the last draft, [block, H]: for tests.
  std::vector<float> hidden_states();
  /// What the confidence head says of each list of the last draft; empty where there is none: for tests.
  std::span<const double> confidence() const { return confidence_; }

 private:
  friend struct Draft;

  /// The key of a recording.
  struct Shape {
    uint32_t injected = 0;  // features, rounded up
    uint32_t depths = 0;    // 0: only inject
    uint32_t max_positions = 0;
    uint32_t store = 0;
    uint32_t paths = 0;  // rows of the Markov head, rounded up; 0: none
    auto operator<=>(const Shape&) const = default;
  };

  Drafter(const DrafterFile& file, const DrafterPlan& plan, Model& target, const DrafterOptions& options);
  void make_parts();
  /// Of those that are injected, row i; behind those that wait come some that pad them.
  Row injected_row(const DraftState& text, uint32_t i) const;
  void upload(const DraftState& text, uint32_t root, uint32_t padded);
  bool run_pass(DraftState& text, uint32_t root, const Shape& shape, const std::stop_token& stop);
  Draft read_results(uint32_t depths);
  bool run(const DraftTree& tree, uint32_t first, BlockDraft& draft, const std::stop_token& stop) override;
  bool has_paths() const { return weights_.markov != nullptr || weights_.selector != nullptr; }
  bool run_markov(uint32_t root, bool is_first, std::span<const BlockPlace> places, const std::stop_token& stop);
  PlaceLists lists_of(std::span<const BlockPlace> places);
  void add_lists(const DraftTree& tree, uint32_t first, std::span<const BlockPlace> run, BlockDraft& draft);
  /// Null once stop was requested: a recording may compile kernels.
  Commands* commands_for(const Shape& shape, const std::stop_token& stop);
  void record_injection(Recorder& record, const Shape& shape);
  void record_block(Recorder& record, const Shape& shape);
  ForwardContext forward_context() const;
  const Weight& head() const { return weights_.body.output ? *weights_.body.output : target_.head(); }
  uint64_t made_recordings() const override { return recordings_.made(); }

  DrafterConfig config_;
  std::vector<LayerSpec> layers_;  // what each computes
  uint32_t candidates_ = 0;
  DrafterWeights weights_;
  // Features on their way into a text's cache. I is most_waiting().
  std::unique_ptr<Buffer> projected_;                 // [I, H]
  std::unique_ptr<Activations> feature_activations_;  // [I, aux layers * H]
  std::unique_ptr<Activations> context_activations_;  // [I, H]: hidden_norm(fc(features))
  // Of each draft one upload and one read: parts of buffers_.input and of results_. The rows that are injected come
  // last in the input: how many there are changes from draft to draft.
  PassParts parts_;                        // of the block
  std::unique_ptr<Buffer> injected_rows_;  // Row [I]
  std::unique_ptr<Buffer> results_;
  std::unique_ptr<Buffer> tokens_, logits_, log_sum_exp_;  // as in Draft
  std::vector<uint32_t> block_tokens_;
  RowBatch block_rows_;
  Recordings<Shape> recordings_;
  uint64_t drafts_ = 0;                // that were begun
  std::unique_ptr<ConvBuffers> conv_;  // null without convolutions
  // Of the draft that is being made, with a Markov head or a selector.
  DraftState* text_ = nullptr;
  bool by_confidence_ = false;
  DraftTree tree_;
  BlockDraft block_;                // of a selector: what the block says of each place
  std::vector<BlockPlace> places_;  // of the draft's lists
  std::vector<double> confidence_;  // likewise
  double device_ms_ = 0;
};

}  // namespace canopy
