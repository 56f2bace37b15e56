#pragma once
// The output of one pass of the target, as a value.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/model/pass_shape.h"
#include "engine/model/state_history.h"

namespace canopy {

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
  std::vector<uint32_t> choices_;   // [head rows]
  std::vector<float> best_logits_;  // [head rows]
  std::vector<float> log_sum_exp_;  // [head rows]
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
