#include "engine/model/forward_output.h"

#include <algorithm>
#include <limits>
#include <string>

#include "engine/base/error.h"
#include "engine/model/model.h"

namespace canopy {

bool ForwardOutput::has_aux_hidden_states() const {
  return aux_hidden_states_ && is_last();
}

bool ForwardOutput::is_of(const Model& model, uint32_t position, uint32_t slot, size_t rows) const {
  return model_ == &model && first_slot_ == slot && positions_.size() == rows && positions_.front() == position;
}

bool ForwardOutput::is_last() const {
  return model_ != nullptr && model_->pass_ == pass_;
}

size_t ForwardOutput::index_of(uint32_t row) const {
  if (row < head_rows_.size() && head_rows_[row] == row) return row;  // of trees
  return static_cast<size_t>(std::ranges::find(head_rows_, row) - head_rows_.begin());
}

uint32_t ForwardOutput::best(uint32_t row) const {
  const size_t index = index_of(row);
  if (index >= best_logits_.size()) {
    throw bad_input("The most probable token after row " + std::to_string(row) +
                    " was asked for; the pass gave those of " + std::to_string(best_logits_.size()) + " rows.");
  }
  if (choices_[index] >= model_->config().vocab) {
    throw bad_input("The model's logits are not numbers at position " + std::to_string(positions_[row] + 1) +
                    ": its weights are damaged, or the device computes wrongly.");
  }
  return choices_[index];
}

uint32_t ForwardOutput::drawn(uint32_t row) const {
  const size_t index = index_of(row);
  const size_t count = best_logits_.empty() ? choices_.size() : 0;
  if (index >= count) {
    throw bad_input("A token drawn after row " + std::to_string(row) + " was asked for; the pass drew tokens after " +
                    std::to_string(count) + " rows.");
  }
  return choices_[index];
}

float ForwardOutput::best_logit(uint32_t row) const {
  best(row);
  return best_logits_[index_of(row)];
}

float ForwardOutput::log_p(uint32_t node) const {
  if (node == 0 || node > parents_.size() || log_sum_exp_.empty()) return std::numeric_limits<float>::quiet_NaN();
  if (parents_[node - 1] == TokenLogit::no_row) return std::numeric_limits<float>::quiet_NaN();
  // Rounding may take it a hair above 0 where the token is as good as certain.
  return std::min(0.0f, token_logits_[node - 1] - log_sum_exp_[parents_[node - 1]]);
}

void ForwardOutput::require_current(uint32_t row) const {
  if (!completed() || row >= positions_.size()) {
    throw bad_input("The logits of row " + std::to_string(row) + " were asked for; the pass has " +
                    std::to_string(positions_.size()) + " rows.");
  }
  if (model_->pass_ != pass_) {
    throw bad_input("The logits of row " + std::to_string(row) +
                    " were asked for after the model had begun another pass; they must be read before.");
  }
}

void ForwardOutput::read(std::span<const uint32_t> rows, std::span<float> to) {
  for (const uint32_t row : rows) require_current(row);
  const uint32_t vocab = model_->config().vocab;
  std::vector<uint32_t> indices;
  for (const uint32_t row : rows) indices.push_back(static_cast<uint32_t>(index_of(row)));
  if (std::ranges::all_of(indices, [&](uint32_t index) { return index < model_->logits_left_; })) {
    return model_->read_logits(indices, to, *this);
  }
  const size_t most = model_->limits().head_rows;
  for (size_t first = 0; first < rows.size(); first += most) {
    const size_t count = std::min(most, rows.size() - first);
    model_->compute_logits(rows.subspan(first, count), static_cast<uint32_t>(positions_.size()));
    indices.resize(count);
    for (uint32_t i = 0; i < count; ++i) indices[i] = i;
    model_->read_logits(indices, to.subspan(first * vocab, count * vocab), *this);
  }
}

std::span<const float> ForwardOutput::logits(uint32_t row) {
  require_current(row);
  row_logits_.resize(model_->config().vocab);
  read({&row, 1}, row_logits_);
  return row_logits_;
}

std::vector<float> ForwardOutput::logits(std::span<const uint32_t> rows) {
  for (const uint32_t row : rows) require_current(row);
  std::vector<float> all(rows.empty() ? 0 : rows.size() * model_->config().vocab);
  read(rows, all);
  return all;
}

}  // namespace canopy
