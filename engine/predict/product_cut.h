#pragma once
// How a product may be cut into workgroups: the variants that the backend itself names for a device.

#include <cstdint>
#include <vector>

#include "engine/compute/types.h"
#include "engine/predict/device_profile.h"
#include "engine/predict/kernel_rules.h"
#include "engine/vulkan/expert_tiles.h"

namespace canopy::predict {

/// Of a workgroup.
struct ProductCut {
  double rows = 0;               // of the weight
  double columns = 0;            // rows of the pass
  double columns_in_flight = 0;  // of each of its weight rows, that it has asked for at a time
  double step = 0;               // of these, that are staged at once
  double invocations = 0;
  double shared_bytes = 0;
};

/// The cuts of a weight [rows, cols] for a pass of `width` rows; the first is what the backend chooses without a
/// measurement. Rules that are set (not 0) come before what is in them.
std::vector<ProductCut> cuts_of(const Weight& weight, uint32_t width, const KernelRules& rules,
                                const DeviceProfile& device);

/// Of a product with experts: its pairs, and on matrix cores its workgroups, whose columns are pairs.
struct ExpertCut {
  vk::PairTiles tiles;
  ProductCut cut;
};
ExpertCut cut_of_experts(const Weight& weight, const ExpertCounts& experts, uint32_t width, bool matrix_cores,
                         const DeviceProfile& device);

}  // namespace canopy::predict
