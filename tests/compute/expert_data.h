#pragma once
// Random experts of a layer, and rows that choose among them.

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "engine/compute/ops.h"
#include "tests/compute/random_data.h"

namespace canopy::test {

/// Gate, up and down of each expert in the form of a file.
struct ExpertMatrices {
  struct Weights {
    const Weight* gate_up = nullptr;
    const Weight* down = nullptr;
  };

  ExpertMatrices(Random& random, WeightType type, const ExpertCounts& experts, uint32_t ffn, uint32_t hidden) {
    for (uint32_t e = 0; e < experts.all; ++e) {
      gate_up.push_back(random.matrix(type, ffn, hidden));
      gate_up.push_back(random.matrix(type, ffn, hidden));
      down.push_back(random.matrix(type, hidden, ffn));
    }
  }
  Weights on(OpBench& bench) const {
    return {bench.joined_weight(gate_up, WeightLayout::paired), bench.joined_weight(down, WeightLayout::stacked)};
  }

  std::vector<FileMatrix> gate_up, down;
};

/// Different experts for each row, [width, used]; where `same`, those of the first row for all.
inline std::vector<uint32_t> random_choice(Random& random, const ExpertCounts& experts, uint32_t width, bool same) {
  std::vector<uint32_t> order(experts.all), chosen;
  std::iota(order.begin(), order.end(), 0);
  for (uint32_t w = 0; w < width; ++w) {
    for (uint32_t i = 0; i < experts.used && (w == 0 || !same); ++i) {
      std::swap(order[i], order[i + random.below(experts.all - i)]);
    }
    chosen.insert(chosen.end(), order.begin(), order.begin() + experts.used);
  }
  return chosen;
}

}  // namespace canopy::test
