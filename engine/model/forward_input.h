#pragma once
// The input of one pass of the target, as a value: its rows, and the results that are wanted.

#include <cstdint>
#include <span>
#include <vector>

#include "engine/compute/rows.h"
#include "engine/compute/sampling.h"
#include "engine/format/model_config.h"
#include "engine/model/memory_plan.h"
#include "engine/model/pass_shape.h"
#include "engine/model/state_history.h"
#include "engine/speculation/draft_tree.h"

namespace canopy {

/// One logit that is wanted of a pass.
struct TokenLogit {
  static constexpr uint32_t no_row = 0xFFFFFFFF;  // nothing is wanted: keeps the place of a row whose head is not there

  uint32_t index = 0;  // of its row in ForwardInput::head_rows, or no_row
  uint32_t token = 0;
};

/// How tokens are drawn, and what of the text so far counts there: engine/speculation/sampling_words.h makes both.
struct Sampling {
  SamplingWords words;  // its position is that of a token behind the text; words.adjustments is set by the model
  /// Ascending by token, of the text before the pass and its first row or, of rows of text, before the last and it; at
  /// most limits().max_adjustments().
  std::vector<TokenAdjustment> adjustments = {};
  bool adjusts = false;  // logits may be adjusted: false where neither penalty nor bias is on
};

/// The input of a pass. Results that are not asked for are not computed. Sequence::text and Sequence::tree make the
/// usual inputs. A pass without a page table reads and writes the model's first pages: who runs such passes beside
/// sequences clears these before.
struct ForwardInput {
  RowBatch batch;
  HeadOutput head = HeadOutput::none;
  std::vector<uint32_t> head_rows = {};  // rows whose head is wanted; of logits at most limits().head_rows
  Sampling sampling = {};                // of HeadOutput::sampled
  /// Of HeadOutput::sampled in a tree: the parent of each of the head_rows, as its place among them; kNoToken of the
  /// root. Empty: each row is the end of the text.
  std::vector<uint32_t> parents = {};
  bool probabilities = false;  // log_sum_exp of head_rows: a token's log probability is its logit less that
  std::vector<TokenLogit> token_logits = {};  // at most limits().max_token_logits()
  /// Of logits: log_sum_exp and token_logits are read together with the first logits that are asked for, so that they
  /// cost no call of their own. Until then they are not there.
  bool read_with_logits = false;
  bool aux_hidden_states = false;  // of all rows: Model::aux_hidden_states() holds them until the next pass
  /// Of a model with recurrent layers. Its rows follow each other or the text that there is a state of, and those that
  /// follow another come behind it.
  StateUse states = {};
};

/// Rows of text behind `committed` positions: row i at position committed + i. What `head` names is wanted of the last
/// row. `pages` is the page table (RowBatch::pages).
ForwardInput text_input(std::span<const uint32_t> tokens, uint32_t committed, HeadOutput head = HeadOutput::none,
                        std::span<const uint32_t> pages = {});

/// Rows of a draft tree behind `committed` positions, row i of node i: K/V of the root and the likeliest chain goes to
/// their places in the text, as far as the page table has these, that of other nodes into the slots of trees. `head` is
/// wanted of all rows; of logits of the first limits.head_rows, as a walk visits few rows and mostly early ones
/// (ForwardOutput::logits computes others when it is asked). `probabilities` makes ForwardOutput::log_p known: of all
/// nodes where the head is no logits; of logits, of the nodes whose parent is one of those first rows, and once logits
/// were read.
ForwardInput tree_input(const DraftTree& tree, uint32_t committed, const ModelLimits& limits, HeadOutput head,
                        bool probabilities = false, std::span<const uint32_t> pages = {});

/// Positions of a text that tree_input() has places for.
uint32_t tree_end(std::span<const uint32_t> pages, const ModelLimits& limits);

/// Throws bad_input for rows or wishes that do not fit the model, its caches or each other.
void validate(const ForwardInput& input, const ModelConfig& config, const ModelLimits& limits);

/// The shape that its recording depends on: widths of a device's bucket share one.
PassShape shape_of(const ForwardInput& input, const ModelConfig& config, const ModelLimits& limits,
                   const DeviceInfo& device);

/// Row i of a pass that is padded: behind its own come rows that stand for nothing.
Row padded_row(const RowBatch& batch, size_t i);

/// ForwardInput::head_rows, and behind them as many others as the shape has: entry i.
uint32_t padded_head_row(const ForwardInput& input, const PassShape& shape, size_t i);

}  // namespace canopy
