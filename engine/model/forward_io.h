#pragma once
// The input of one pass of the target and its output, as values: the rows and the results that are wanted of them,
// and these results.

#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/compute/rows.h"
#include "engine/compute/sampling.h"
#include "engine/format/model_config.h"
#include "engine/model/load_plan.h"
#include "engine/model/pass_buffers.h"
#include "engine/model/recurrent_memory.h"
#include "engine/speculation/ddtree.h"

namespace canopy {

/// A recording serves all contexts up to a power of two, so that a growing text is recorded anew a few times only.
inline uint32_t rounded_positions(uint32_t positions, uint32_t context) {
  constexpr uint32_t smallest = 256;
  return std::min(std::max(smallest, std::bit_ceil(positions)), context);
}

/// One logit that is wanted of a pass.
struct TokenLogit {
  static constexpr uint32_t no_row = 0xFFFFFFFF;  // nothing is wanted: keeps the place of a row whose head is not there

  uint32_t index = 0;  // of its row in ForwardInput::head_rows, or no_row
  uint32_t token = 0;
};

/// How tokens are drawn, and what of the text so far counts there: engine/speculation/sampler.h makes both.
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
  bool likeliest = false;      // the kLikeliest tokens after each of head_rows
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

// The output of one pass of the target, as a value.

class Model;

/// Came from Model::forward, which says in its ForwardInput what is there. Logits of whole rows stay on the device and
/// are read when they are asked for, which must be before the model's next pass; all else may be read at any time,
/// after the first logits where ForwardInput::read_with_logits asked for that. The model must outlive it.
class ForwardOutput {
 public:
  /// Of a pass that was stopped.
  ForwardOutput() = default;

  /// False: it was stopped. Nothing else is there then, and the slots of the rows hold nothing of use.
  bool completed() const { return model_ != nullptr; }
  /// Rows that the pass had.
  uint32_t width() const { return static_cast<uint32_t>(positions_.size()); }
  /// Whether it left aux hidden states of its rows, which are on the device until the model's next pass.
  bool has_aux_hidden_states() const;
  /// Whether it is of a pass over so many rows, the first of them at `position` and its K/V in `slot`.
  bool is_of(const Model& model, uint32_t position, uint32_t slot, size_t rows) const;
  /// The states of recurrent layers that it went on from and has made.
  const StateUse& states() const { return states_; }
  /// Whether the model has begun no other pass since, so that the slots of trees hold what it wrote.
  bool is_last() const;
  /// The pass by the device's clock, 0 where it has none.
  double device_ms() const { return device_ms_; }

  /// The most probable token after a row, and its logit; of an argmax and for its head_rows only. Throws bad_input
  /// where the logits were no numbers, and for other rows.
  uint32_t best(uint32_t row) const;
  float best_logit(uint32_t row) const;
  /// The token drawn after a row, of a pass with HeadOutput::sampled and for its head_rows only; kNoToken where none
  /// can be: logits(row) shows why. Throws bad_input for other rows.
  uint32_t drawn(uint32_t row) const;
  /// Of an argmax, the most probable token after each of the head_rows; kNoToken where a row held nothing but NaN.
  /// Where tokens were drawn, these. Otherwise empty.
  std::span<const uint32_t> choices() const { return choices_; }

  /// Where they were asked for: the kLikeliest tokens after the i-th of the head_rows, the largest logit first, ties by
  /// the lowest token.
  std::span<const uint32_t> likeliest(size_t i) const {
    return std::span(likeliest_).subspan(i * kLikeliest, kLikeliest);
  }
  /// Of an argmax, their logits.
  std::span<const float> likeliest_logits(size_t i) const {
    return std::span(likeliest_logits_).subspan(i * kLikeliest, kLikeliest);
  }
  size_t rows_with_likeliest() const { return likeliest_.size() / kLikeliest; }

  /// Where probabilities were asked for: natural, over the whole vocabulary, for each of the head_rows.
  std::span<const float> log_sum_exp() const { return log_sum_exp_; }
  /// Of ForwardInput::token_logits, in its order.
  std::span<const float> token_logits() const { return token_logits_; }
  /// For each layer with experts: how many different ones the rows went through.
  std::span<const uint32_t> distinct_experts() const { return distinct_experts_; }
  /// Of a pass over Sequence::tree with probabilities: log of the target's probability of a node's token, at
  /// temperature 1 and with no filter; NaN of the root and where it is not known, as tree_input() says.
  float log_p(uint32_t node) const;

  /// The logits after a row, [vocab], until the next call. The head of a row that is none of the head_rows is computed
  /// now, with the bits that it would have had in the pass, and so is every row's from then on. Throws bad_input for a
  /// row that the pass did not have, and once the model has begun another pass.
  std::span<const float> logits(uint32_t row);
  /// Of several rows, [rows, vocab].
  std::vector<float> logits(std::span<const uint32_t> rows);

 private:
  friend class Model;

  size_t index_of(uint32_t row) const;
  void require_current(uint32_t row) const;
  /// Fills `to`, [rows, vocab], from the logits that the pass left or by computing the head.
  void read(std::span<const uint32_t> rows, std::span<float> to);

  Model* model_ = nullptr;
  uint64_t pass_ = 0;                // number of the pass
  uint32_t first_slot_ = 0;          // of the first row
  std::vector<uint32_t> positions_;  // of its rows
  std::vector<uint32_t> head_rows_;
  std::vector<uint32_t> choices_;        // [head rows]
  std::vector<float> best_logits_;       // [head rows]
  std::vector<uint32_t> likeliest_;      // [head rows, kLikeliest]
  std::vector<float> likeliest_logits_;  // likewise
  std::vector<float> log_sum_exp_;       // [head rows]
  std::vector<float> token_logits_;
  std::vector<uint32_t> distinct_experts_;
  std::vector<uint32_t> parents_;     // index into head_rows of each of the token_logits, or TokenLogit::no_row
  std::optional<PassShape> waiting_;  // its results are still on the device, to be read with the first logits
  std::vector<float> row_logits_;     // of the row asked for last
  StateUse states_;
  bool aux_hidden_states_ = false;
  double device_ms_ = 0;
};

}  // namespace canopy
