#include "engine/model/rotation.h"

#include <cmath>

namespace canopy {

std::vector<float> rotation_table(const ModelConfig& config, uint32_t context) {
  const std::vector<double> frequencies = rope_frequencies(config, context);  // [head_dim / 2]
  const double magnitude = config.rope_scaling.magnitude;
  std::vector<float> table;
  table.reserve(size_t{context} * frequencies.size() * 2);
  for (uint32_t position = 0; position < context; ++position) {
    for (const double frequency : frequencies) {
      const double angle = position * frequency;
      table.push_back(static_cast<float>(std::cos(angle) * magnitude));
      table.push_back(static_cast<float>(std::sin(angle) * magnitude));
    }
  }
  return table;
}

std::vector<float> no_rotation_table(const ModelConfig& config, uint32_t context) {
  std::vector<float> table(size_t{context} * config.head_dim);
  for (size_t i = 0; i < table.size(); i += 2) table[i] = 1;
  return table;
}

}  // namespace canopy
