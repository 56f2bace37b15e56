#pragma once
// Data for the tests of ops that rotate heads.

#include <cmath>
#include <cstdint>
#include <vector>

#include "engine/compute/rows.h"

namespace canopy::test {

/// cos and sin [context, head_dim / 2, 2]. They turn faster than in any model, so that all angles differ.
inline std::vector<float> rotation_table(uint32_t context, uint32_t head_dim) {
  std::vector<float> table;
  for (uint32_t p = 0; p < context; ++p) {
    for (uint32_t i = 0; i < head_dim / 2; ++i) {
      const double angle = p * std::pow(100.0, -2.0 * i / head_dim);
      table.push_back(static_cast<float>(std::cos(angle)));
      table.push_back(static_cast<float>(std::sin(angle)));
    }
  }
  return table;
}

/// Rows of text at positions below 100, tree nodes in slots at the end of the context, whose position differs, and rows
/// that stand for nothing.
inline RowBatch text_and_tree_rows(uint32_t width, uint32_t context) {
  RowBatch batch;
  for (uint32_t w = 0; w < width; ++w) {
    if (w % 7 == 4) {
      batch.rows.push_back({.slot = kNoSlot});
    } else if (w % 3 == 2) {
      batch.add_node(0, context - 1 - w, 5 + w, -1);
    } else {
      batch.add_text(0, (7 * w + 1) % 100);
    }
  }
  return batch;
}

}  // namespace canopy::test
