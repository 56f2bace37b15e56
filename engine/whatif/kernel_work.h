#pragma once
// The work of the kernels of products, attention and mixtures of experts, cut into workgroups as a backend would choose
// for the device, and the time that such work takes: bytes in flight, arithmetic, dispatches.

#include <cstdint>
#include <string>
#include <vector>

#include "engine/compute/ops.h"
#include "engine/compute/types.h"
#include "engine/whatif/device_profile.h"
#include "engine/whatif/kernel_rules.h"

namespace canopy::predict {

// The time that work takes on a device: bytes at the rate that the workgroups can keep in flight, arithmetic at the
// rate of the units that have some, and the cost of its dispatches.

/// What an op does on a device, all its workgroups together. They are alike, except where longest_memory_bytes is set.
struct Work {
  std::string kernel;       // its name, where there is one to tell
  double memory_bytes = 0;  // read from memory
  double cache_bytes = 0;   // moved between the units and the shared cache, beside those
  double lane_ops = 0;      // instructions × lanes, multiply-adds of f32 among them
  double matrix_flops = 0;

  double workgroups = 1;
  double invocations = 128;              // of a workgroup
  double bytes_in_flight = 4096;         // that a workgroup has asked for at a time, on average
  double registers = 64;                 // of an invocation
  double shared_bytes = 0;               // of a workgroup
  double longest_memory_bytes = 0;       // of the workgroup that reads most; 0: all read the same
  double workgroups_reading_memory = 0;  // the others read what these brought to the cache; 0: all
  double cache_latencies = 0;            // dependent accesses to the shared cache before those of memory
  double tail_latencies = 0;             // the same behind the last workgroup's work
  double steps = 1;                      // dispatches that wait for the one before
  double early_us = 0;                   // of each of them, that it begins before the one in front has ended
  // Of memory, from a step's start to its first result: its descriptors or activations, then its weights.
  double first_latencies = 2;
};

/// Of the accesses of a tail, those until a workgroup knows that it is the last: what it wrote has to be where others
/// find it before it is counted.
inline constexpr double kCountLatencies = 2;

enum class Limit { memory, in_flight, cache, arithmetic, steps };
const char* to_string(Limit limit);

/// Microseconds.
struct WorkTime {
  double memory = 0, cache = 0, arithmetic = 0;  // each as if it were alone
  double steps = 0;                              // dispatches, barriers and dependent latencies
  double total = 0;
  Limit limit = Limit::steps;  // the longest of them
};

WorkTime time_of(const Work& work, const DeviceProfile& device);

// How a product may be cut into workgroups: the variants that the backend itself names for a device.

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

// The work of attention: in the kernels of GPUs partial results of chunks of positions and their merge, cut as the
// backend's plan says; in the others a workgroup for some rows of a K/V head.

Work work_of_attention(const AttentionArgs& args, const KernelRules& rules, const DeviceProfile& device);

// What mixtures of experts do on a device: of the weights those of the experts that rows touch, as many as rows touch
// that choose evenly.

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
