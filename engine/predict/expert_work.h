#pragma once
// What mixtures of experts do on a device: of the weights those of the experts that rows touch, as many as rows touch
// that choose evenly.

#include "engine/compute/ops.h"
#include "engine/predict/kernel_rules.h"
#include "engine/predict/work_time.h"

namespace canopy::predict {

/// What makes the logits of a router.
struct RouteKernel {
  double experts = 4, invocations = 64;  // of a workgroup
  double columns_in_flight = 4 * 256;    // of each of its experts, that it has asked for at a time
  double steps = 2;                      // logits, choice
};
/// shaders/route_logits.comp, unless said otherwise.
Work work_of_route(const RouteArgs& args, const RouteKernel& kernel = {});
/// Of the Vulkan kernels, on matrix cores where the rules' products are, else by multiply-adds.
Work work_of_experts(const Weight& weight, const ExpertCounts& experts, uint32_t width, const KernelRules& rules,
                     const DeviceProfile& device);

/// Where rows with the same expert are grouped, a step before the first of the two ops that go by it.
inline double steps_of_groups(const ExpertCounts& experts, uint32_t width) {
  return experts.read_again(width) >= kEnoughReadAgain ? 1 : 0;
}

/// Bytes that a pass moves beside the weights.
inline double bytes_beside(const OpPrice& price, const Weight& weight, const ExpertCounts& experts, uint32_t width) {
  return static_cast<double>(price.bytes) - static_cast<double>(expert_price(weight, experts, width).bytes);
}

}  // namespace canopy::predict
