#pragma once
// Repacks a weight on all cores into the slots of a ring, from which the device copies meanwhile.

#include <cstdint>
#include <span>
#include <vector>

#include "engine/vulkan/upload_ring.h"
#include "engine/vulkan/weight_layout.h"

namespace canopy::vk {

/// A run of bands that goes through a slot together: units first, then scales.
struct StreamPiece {
  WeightShardLayout layout;  // its rows, counted in the whole weight
  const Buffer* units = nullptr;
  const Buffer* scales = nullptr;  // null for types without
  uint64_t unit_offset = 0;        // where its bytes go in the buffers
  uint64_t scale_offset = 0;
};

/// Sends the pieces in order. Returns when the last copy is submitted; the slots from which the device still copies are
/// known to the ring. `next_slot` counts the slots that were used. Throws what the parts' readers throw and
/// device_lost; pieces that were submitted before are then copied all the same.
void stream(UploadRing& ring, uint64_t& next_slot, std::span<const WeightPart> parts, WeightLayout layout,
            const std::vector<StreamPiece>& pieces);

}  // namespace canopy::vk
