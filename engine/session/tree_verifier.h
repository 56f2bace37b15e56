#pragma once
// The target's side of a round: a draft tree in one pass, and what the target says at each node (design.md, section 2,
// steps 3 and 4).

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <stop_token>
#include <vector>

#include "engine/model/model.h"
#include "engine/speculation/draft_tree.h"

namespace canopy {

class TreeVerifier {
 public:
  /// Over the cache of a sequence, or the model's first. The model must outlive it.
  explicit TreeVerifier(Model& model, uint32_t cache = 0) : model_(model), cache_(cache) {}

  /// Runs a tree behind `committed` positions; `head` is argmax where a walk is greedy, which the device then decides,
  /// else logits. A tree of the root alone is an autoregressive decoding pass. False when stop
  /// was requested; then the cache still holds `committed` positions.
  /// `probabilities` makes log_p() known, for the price of a pass over the logits.
  bool verify(const DraftTree& tree, uint32_t committed, HeadOutput head, bool keep_aux, bool probabilities,
              const std::stop_token& stop);

  /// Runs text behind `committed` positions, to which its K/V then belongs. What `head` asks for is that of the
  /// last token, as node 0.
  bool prefill(std::span<const uint32_t> tokens, uint32_t committed, HeadOutput head, bool keep_aux,
               const std::stop_token& stop);

  /// The target's most probable token after a node; by argmax only. Throws bad_input where the logits are no numbers.
  uint32_t best(uint32_t node) const;

  /// The same of every node, where the pass was by argmax; empty otherwise.
  std::span<const uint32_t> choices() const { return result_.ids; }

  /// The target's logits after a node, [vocab]; by logits only. Valid until the next call.
  std::span<const float> logits(uint32_t node);

  /// Log of the target's probability of a node's token, at temperature 1 and with no filter; NaN where it is not known.
  float log_p(uint32_t node) const;

  /// The last verified pass, by the device's clock and in whole.
  double device_ms() const { return device_ms_; }

 private:
  bool run(PassOutputs outputs, bool keep_aux, const std::stop_token& stop);

  Model& model_;
  uint32_t cache_;
  RowBatch batch_;
  PassResult result_;
  std::vector<uint32_t> parents_;  // of nodes 1 ..., where probabilities were asked for
  std::vector<float> row_logits_;  // of one node
  uint32_t first_answer_ = 0;      // row of node 0
  uint32_t rows_with_logits_ = 0;
  double device_ms_ = 0;
};

}  // namespace canopy
