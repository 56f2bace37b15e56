#pragma once
// The logits of all rows of a pass, also where there are more rows than a pass returns logits for.

#include <algorithm>
#include <numeric>
#include <vector>

#include "engine/model/model.h"

namespace canopy::test {

/// The numbers 0 ... width - 1.
inline std::vector<uint32_t> all_rows(const RowBatch& batch) {
  std::vector<uint32_t> rows(batch.width());
  std::iota(rows.begin(), rows.end(), 0u);
  return rows;
}

/// Runs a pass and returns the logits of all its rows in order: the first with the pass itself, the others by
/// Model::compute_logits. With aux_hidden_states it returns these too.
inline PassResult run_for_all_logits(Model& model, const RowBatch& batch, bool aux_hidden_states = false) {
  const std::vector<uint32_t> rows = all_rows(batch);
  const auto chunk = [&](size_t first) {
    const size_t end = std::min(rows.size(), first + model.limits().head_rows);
    return std::vector<uint32_t>(rows.begin() + static_cast<std::ptrdiff_t>(first),
                                 rows.begin() + static_cast<std::ptrdiff_t>(end));
  };
  PassOutputs outputs = PassOutputs::logits_of(chunk(0));
  outputs.aux_hidden_states = aux_hidden_states;
  PassResult result = model.run(batch, outputs);
  for (size_t first = outputs.rows.size(); first < rows.size(); first += model.limits().head_rows) {
    const std::vector<float> logits = model.compute_logits(PassOutputs::logits_of(chunk(first))).logits;
    result.logits.insert(result.logits.end(), logits.begin(), logits.end());
  }
  return result;
}

}  // namespace canopy::test
