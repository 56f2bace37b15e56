#pragma once
// What mixtures of experts do on a device: of the weights those of the experts that rows touch, as many as rows touch
// that choose evenly.

#include "engine/compute/ops.h"
#include "engine/predict/kernel_rules.h"
#include "engine/predict/work_time.h"

namespace canopy::predict {

/// Of today's Vulkan kernels whatever the family: multiply-adds (shaders/expert_product.glsl).
Work work_of_route(const RouteArgs& args);
Work work_of_experts(const Weight& weight, const ExpertCounts& experts, uint32_t width);

/// Bytes that a pass moves beside the weights.
inline double bytes_beside(const OpPrice& price, const Weight& weight, const ExpertCounts& experts, uint32_t width) {
  return static_cast<double>(price.bytes) - static_cast<double>(expert_price(weight, experts, width).bytes);
}

}  // namespace canopy::predict
