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

struct Positions {
  uint32_t first = 0, end = 0;
};

/// frequencies: of the pairs that are turned, the first of a head, or the last where they are.
std::vector<float> table_of(uint32_t head_dim, Positions positions, const std::vector<double>& frequencies,
                            double magnitude, bool are_last = false) {
  const size_t others = head_dim / 2 - frequencies.size();
  std::vector<float> table;
  table.reserve(size_t{positions.end - positions.first} * head_dim);
  for (uint32_t position = positions.first; position < positions.end; ++position) {
    for (size_t i = 0; are_last && i < others; ++i) table.insert(table.end(), {1.0f, 0.0f});
    for (const double frequency : frequencies) {
      const double angle = position * frequency;
      table.push_back(static_cast<float>(std::cos(angle) * magnitude));
      table.push_back(static_cast<float>(std::sin(angle) * magnitude));
    }
    for (size_t i = 0; !are_last && i < others; ++i) table.insert(table.end(), {1.0f, 0.0f});
  }
  return table;
}

std::vector<float> keys_table(const ModelConfig& config, uint32_t context, Positions positions) {
  return table_of(config.head_dim, positions, rope_frequencies(config, context), config.rope_scaling.magnitude,
                  config.has_latent_attention());
}

std::vector<float> local_table(const ModelConfig& config, Positions positions) {
  const uint32_t head_dim = config.local_head_dim != 0 ? config.local_head_dim : config.head_dim;
  return table_of(head_dim, positions, local_rope_frequencies(config), 1);
}

}  // namespace

uint32_t query_offset(const ModelConfig& config, uint32_t context) {
  const RopeScaling& scaling = config.rope_scaling;
  return scaling.query_growth != 0 && context > scaling.original_context ? context : 0;
}

std::vector<float> rotation_table(const ModelConfig& config, uint32_t context) {
  const RopeScaling& scaling = config.rope_scaling;
  std::vector<float> table = keys_table(config, context, {0, context});
  const uint32_t with_queries = query_offset(config, context);
  table.reserve((size_t{context} + with_queries) * config.head_dim);
  for (uint32_t position = 0; position < with_queries; ++position) {
    const uint32_t steps = position / scaling.original_context;
    const double factor = 1 + scaling.query_growth * std::log(1.0 + steps);
    const size_t first = size_t{position} * config.head_dim;
    for (size_t i = 0; i < config.head_dim; ++i) table.push_back(static_cast<float>(table[first + i] * factor));
  }
  return table;
}

std::vector<float> local_rotation_table(const ModelConfig& config, uint32_t context) {
  return local_table(config, {0, context});
}

std::vector<float> rotation_at(const ModelConfig& config, uint32_t context, uint32_t position) {
  return keys_table(config, context, {position, position + 1});
}

std::vector<float> local_rotation_at(const ModelConfig& config, uint32_t position) {
  return local_table(config, {position, position + 1});
}

std::vector<float> no_rotation_table(const ModelConfig& config, uint32_t context) {
  std::vector<float> table(size_t{context} * config.head_dim);
  for (size_t i = 0; i < table.size(); i += 2) table[i] = 1;
  return table;
}

}  // namespace canopy
