#pragma once
// Turns the rows of a file into the layout of weight_layout.h.

#include <cstdint>
#include <span>

#include "engine/compute/types.h"
#include "engine/vulkan/weight_layout.h"

namespace canopy::vk {

/// Fills a shard's words from the file's bytes, on all cores, asking the parts for 64 rows at a time, in ascending
/// order over all cores together. `units` and `scales` have the shard's bytes. Every word is written once and none is
/// read; each core writes forward, in at most four streams that fill whole cache lines, so that they may lie in memory
/// that the host does not cache. Throws what the parts' readers throw.
void repack(std::span<const WeightPart> parts, WeightLayout layout, const WeightShardLayout& shard,
            std::span<uint32_t> units, std::span<uint32_t> scales);

}  // namespace canopy::vk
