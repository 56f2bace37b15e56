#pragma once
// The logits of all rows of a pass, also where there are more rows than a pass returns logits for.

#include <algorithm>
#include <numeric>
#include <span>
#include <vector>

#include "engine/model/model.h"

namespace canopy::test {

/// The numbers 0 ... width - 1.
inline std::vector<uint32_t> all_rows(const RowBatch& batch) {
  std::vector<uint32_t> rows(batch.width());
  std::iota(rows.begin(), rows.end(), 0u);
  return rows;
}

/// Runs a pass for the logits of these rows, which come with it, [rows, vocab].
inline std::vector<float> logits_of(Model& model, const RowBatch& batch, const std::vector<uint32_t>& rows) {
  return model.forward({batch, HeadOutput::logits, rows}).logits(rows);
}

/// What the last pass left on the device, [width, aux layers * H].
inline std::vector<float> aux_hidden_states_of(const Model& model, uint32_t width) {
  std::vector<float> values(size_t{width} * model.aux_layers().size() * model.config().hidden);
  model.device().read(*model.aux_hidden_states(), 0, std::as_writable_bytes(std::span(values)));
  return values;
}

struct FullPass {
  std::vector<float> logits;             // [width, vocab]
  std::vector<float> aux_hidden_states;  // where they are wanted
};

/// Runs a pass for the logits of all its rows in order: the first come with the pass itself, the head of the others is
/// computed afterwards.
inline FullPass run_for_all_logits(Model& model, const RowBatch& batch, bool aux_hidden_states = false,
                                   const StateUse& states = {}) {
  const std::vector<uint32_t> rows = all_rows(batch);
  const size_t count = std::min<size_t>(rows.size(), model.limits().head_rows);
  ForwardInput input{batch, HeadOutput::logits, {rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(count)}};
  input.aux_hidden_states = aux_hidden_states;
  input.states = states;
  ForwardOutput output = model.forward(input);
  FullPass result;
  if (aux_hidden_states) result.aux_hidden_states = aux_hidden_states_of(model, batch.width());
  result.logits = output.logits(input.head_rows);
  const std::vector<float> others = output.logits(std::span(rows).subspan(count));
  result.logits.insert(result.logits.end(), others.begin(), others.end());
  return result;
}

}  // namespace canopy::test
