#include "engine/vulkan/weight_layout.h"

#include <algorithm>
#include <string>

#include "engine/base/error.h"
#include "engine/vulkan/word_layout.h"

namespace canopy::vk {

namespace {

constexpr uint32_t kBlock = 32;

uint32_t round_up(uint32_t value, uint32_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

bool has_scales(WeightType type) {
  return type == WeightType::q8_0 || type == WeightType::q4_1 || type == WeightType::q4_0;
}

uint32_t blocks_of(uint32_t cols) {
  return (cols + kBlock - 1) / kBlock;
}

uint32_t units_of(WeightType type, uint32_t cols) {
  return blocks_of(cols) * (kBlock / columns_per_unit(type));
}

}  // namespace

uint32_t columns_per_unit(WeightType type) {
  switch (type) {
    case WeightType::f32: return 4;
    case WeightType::f16:
    case WeightType::bf16: return 8;
    case WeightType::q8_0: return 16;
    case WeightType::q4_0:
    case WeightType::q4_1: return 32;
    default: return 0;
  }
}

std::vector<WeightShardLayout> shard_rows(WeightType type, WeightExtent extent, uint64_t max_bytes) {
  const WordFormat* words = word_format(type);
  const uint64_t unit_row =
      words != nullptr ? uint64_t{words_per_row(*words, extent.cols)} * 4 : uint64_t{units_of(type, extent.cols)} * 16;
  const uint64_t scale_row = has_scales(type) ? uint64_t{blocks_of(extent.cols)} * 4 : 0;
  const uint64_t fitting = max_bytes / std::max(unit_row, scale_row) / kBandRows * kBandRows;
  if (fitting == 0) {
    throw out_of_memory(std::to_string(kBandRows) + " rows of a weight with " + std::to_string(extent.cols) +
                        " columns take " + std::to_string(unit_row * kBandRows) + " bytes; the device allows " +
                        std::to_string(max_bytes) + " in one buffer.");
  }
  std::vector<WeightShardLayout> shards;
  for (uint32_t first = 0; first < extent.rows;) {
    WeightShardLayout shard;
    shard.first_row = first;
    shard.rows = static_cast<uint32_t>(std::min<uint64_t>(fitting, extent.rows - first));
    shard.stored_rows = round_up(shard.rows, kBandRows);
    shard.unit_bytes = unit_row * shard.stored_rows;
    shard.scale_bytes = scale_row * shard.stored_rows;
    shards.push_back(shard);
    first += shard.rows;
  }
  return shards;
}

}  // namespace canopy::vk
