#pragma once
// Heads that draft one token after another from the target's states, along several paths at once: a pass for each depth
// (beam_draft.h), whose output at a node is the state that the node's children go on from. Those with a layer and keys
// of their own are in step_head.h; one that reads the target's keys is in assistant_head.h.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <vector>

#include "engine/model/feature_drafter.h"
#include "engine/model/weight_plan.h"
#include "engine/model/weights.h"
#include "engine/speculation/beam_draft.h"

namespace canopy {

struct HeadOptions {
  CacheType cache_type = CacheType::f16;  // of the target's; f16 where the head's own do not fit its blocks
  LoadCallbacks callbacks;
  ReclaimableMemory* memory = nullptr;  // of a model that the pair replaces; null: none
};

class BeamHead : public FeatureDrafter, protected NodeRunner {
 public:
  /// Tokens of the longest draft, as far as the controller lets it grow.
  static constexpr uint32_t kDeepest = 12;
  /// Tokens in the list behind a node.
  static constexpr uint32_t kListed = 16;
  /// Nodes that one draft runs at most.
  static constexpr uint32_t kMostNodes = 1 + (kDeepest - 1) * kMostBeams;

  ~BeamHead() override;

  bool by_token() const override { return true; }
  uint32_t most_beams() const override { return kMostBeams; }
  uint32_t max_depth() const override { return kDeepest; }
  uint32_t drafted_tokens() const override { return listed_; }
  const ModelConfig& layers_config() const override { return config_; }

  using FeatureDrafter::draft;
  /// Throws bad_input, too, behind a text whose last feature is gone: it is there once its token was committed, and
  /// until another text is drafted behind.
  std::optional<Draft> draft(DraftState& text, uint32_t root, const DraftWish& wish,
                             const std::stop_token& stop = {}) override;

  /// The nodes that the last draft has run: list i of it is behind node i. And the states that they leave, [nodes,
  /// width of a state]: for tests.
  const DraftTree& drafted() const { return tree_; }
  virtual std::vector<float> hidden_states() const;

 protected:
  /// config: of the head's layers; its vocabulary is the tokens that are drafted. feature_width: floats of a feature.
  BeamHead(Model& target, const ModelConfig& config, const ModelLimits& limits, uint32_t feature_width);

  /// Whether the state of the last token of a text is at hand.
  virtual bool has_last_state(const DraftState& text) const = 0;
  /// The target's id of a token by its place in the head's output.
  virtual uint32_t token_at(uint32_t place) const { return place; }
  /// Plans matrices, whose bytes it adds to these, of a head's weights.
  AddMatrix counting(uint64_t& file_bytes, uint64_t& device_bytes) const;

  // What passes over nodes leave: lists of likely tokens behind `width` rows, and the states of all nodes of a draft.

  /// Bytes of both.
  uint64_t node_bytes(uint32_t width, uint32_t state_width) const;
  void allocate_nodes(uint32_t width, uint32_t state_width);
  /// The lists of the logits in buffers_, [width, vocab].
  void record_lists(Recorder& record, uint32_t width, uint32_t vocab);
  /// Reads those of `count` rows and appends them.
  void read_lists(uint32_t count, BlockDraft& draft);

  ModelConfig config_;
  uint32_t listed_ = 0;
  std::unique_ptr<Buffer> states_of_nodes_;  // [nodes of a draft, width of a state]
  // Of the draft that is being made.
  DraftState* text_ = nullptr;
  uint32_t last_position_ = 0;  // of the text
  double device_ms_ = 0;

 private:
  /// Where the lists of so many rows lie in results_, in bytes.
  struct ListLayout {
    uint64_t tokens = 0, logits = 0, log_sum_exp = 0, bytes = 0;
  };
  ListLayout list_layout(uint32_t width) const;

  DraftTree tree_;
  ListLayout lists_;
  uint32_t state_width_ = 0;
  std::unique_ptr<Buffer> results_;
  std::unique_ptr<Buffer> tokens_, logits_, log_sum_exp_;  // [width, listed_] both; [width]
};

/// A copy of one row of a buffer to a row of another, as CopyRowsArgs reads it.
struct RowMove {
  uint32_t from = 0, to = 0;
};

}  // namespace canopy
