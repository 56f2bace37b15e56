#include "engine/model/rotation.h"

#include <cmath>

namespace canopy {

std::vector<uint32_t> head_order(const ModelConfig& config) {
  const uint32_t half = config.head_dim / 2, turned = config.turned() / 2;  // pairs
  if (turned == half || config.rope_layout == RopeLayout::interleaved) return {};
  std::vector<uint32_t> order(config.head_dim);
  uint32_t rest = 2 * turned;
  for (uint32_t i = 0; i < half; ++i) {
    order[i] = i < turned ? i : rest++;
    order[half + i] = i < turned ? turned + i : rest++;
  }
  return order;
}

namespace {

/// frequencies: of the pairs that are turned.
std::vector<float> table_of(const ModelConfig& config, uint32_t context, const std::vector<double>& frequencies,
                            double magnitude) {
  std::vector<float> table;
  table.reserve(size_t{context} * config.head_dim);
  for (uint32_t position = 0; position < context; ++position) {
    for (const double frequency : frequencies) {
      const double angle = position * frequency;
      table.push_back(static_cast<float>(std::cos(angle) * magnitude));
      table.push_back(static_cast<float>(std::sin(angle) * magnitude));
    }
    for (size_t i = frequencies.size(); i < config.head_dim / 2; ++i) table.insert(table.end(), {1.0f, 0.0f});
  }
  return table;
}

}  // namespace

std::vector<float> rotation_table(const ModelConfig& config, uint32_t context) {
  return table_of(config, context, rope_frequencies(config, context), config.rope_scaling.magnitude);
}

std::vector<float> local_rotation_table(const ModelConfig& config, uint32_t context) {
  return table_of(config, context, local_rope_frequencies(config), 1);
}

std::vector<float> no_rotation_table(const ModelConfig& config, uint32_t context) {
  std::vector<float> table(size_t{context} * config.head_dim);
  for (size_t i = 0; i < table.size(); i += 2) table[i] = 1;
  return table;
}

}  // namespace canopy
