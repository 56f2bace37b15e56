#pragma once
// Turns the rows of a file into the layout of weight_layout.h.

#include <cstdint>
#include <functional>
#include <span>

#include "engine/compute/types.h"
#include "engine/vulkan/weight_layout.h"

namespace canopy::vk {

/// Packs the band of a shard with this index into its words, which are written once, forward, in at most four streams
/// that fill whole cache lines, and never read: they may lie in memory that the host does not cache.
using PackBand = std::function<void(const WeightShardLayout& shard, uint64_t band, std::span<uint32_t> units,
                                    std::span<uint32_t> scales)>;

/// For one thread, with the memory that it works in. It asks the parts, which must outlive it, for up to 64 rows at a
/// time and throws what their readers throw.
PackBand band_packer(std::span<const WeightPart> parts, WeightLayout layout);

/// Fills a shard's words from the file's bytes, band by band on all cores, which take the bands in ascending order.
/// `units` and `scales` have the shard's bytes. Throws what the parts' readers throw.
void repack(std::span<const WeightPart> parts, WeightLayout layout, const WeightShardLayout& shard,
            std::span<uint32_t> units, std::span<uint32_t> scales);

/// How many bands are work enough for one thread: starting it costs as much as fewer.
uint64_t bands_of_a_thread(const WeightShardLayout& shard);

}  // namespace canopy::vk
