#pragma once
// State shared by the device and its recorders.

#include <memory>
#include <optional>
#include <string>

#include "engine/compute/types.h"
#include "engine/vulkan/buffer_arena.h"
#include "engine/vulkan/context.h"
#include "engine/vulkan/device_objects.h"
#include "engine/vulkan/expert_tiles.h"
#include "engine/vulkan/product_config.h"
#include "engine/vulkan/product_tuner.h"
#include "engine/vulkan/upload_ring.h"

namespace canopy::vk {

struct DeviceState {
  std::unique_ptr<Instance> instance;
  std::unique_ptr<Context> context;
  DeviceInfo info;
  bool software = false;
  KernelFamily family = KernelFamily::fma;
  std::optional<MatrixShape> matrix;    // of the family matrix
  std::optional<MatrixShape> integers;  // of matrix_i8
  uint32_t max_tile = 8;                // columns of a matrix product's tile
  uint32_t attention_lanes = 32;
  bool separate_steps = false;     // heads and merges of attention in steps of their own, whatever could be done
  double flops_per_second = 5e11;  // for splitting submissions: a cautious guess, then half of the best that was seen
  std::optional<FmaConfig> forced_fma;
  std::optional<MatrixConfig> forced_matrix;
  // What the recorder takes for every product while a candidate is being timed.
  std::optional<ProductVariant> timed_product;
  std::optional<ExpertVariant> timed_experts;
  std::unique_ptr<ProductTuner> tuner;  // null where kernels follow from rules alone
  std::unique_ptr<BufferArena> arena;   // of the weights that are expected
  std::unique_ptr<UploadRing> ring;     // for weights, while they are loaded
  uint64_t next_slot = 0;               // of the ring
  // Stand in for optional bindings: for those that a kernel reads, and for those that it could write. Dispatches side
  // by side would else read what others are said to write.
  Buffer dummy, written_dummy;
  /// Of ops that need some while they run. All recordings share it, as they run one after the other; one that was made
  /// when it was smaller keeps its own.
  std::shared_ptr<Buffer> scratch;

  /// Of a family on matrix cores that the device has.
  const MatrixShape& matrix_of(KernelFamily of) const { return of == KernelFamily::matrix_i8 ? *integers : *matrix; }
};

inline const VulkanBuffer& buffer_of(const canopy::Buffer& buffer) {
  return static_cast<const VulkanBuffer&>(buffer);
}
inline VulkanActivations& activations_of(canopy::Activations& activations) {
  return static_cast<VulkanActivations&>(activations);
}
inline const VulkanActivations& activations_of(const canopy::Activations& activations) {
  return static_cast<const VulkanActivations&>(activations);
}
inline const VulkanWeight& weight_of(const canopy::Weight& weight) {
  return static_cast<const VulkanWeight&>(weight);
}
inline const VulkanKv& kv_of(const canopy::KvLayer& layer) {
  return static_cast<const VulkanKv&>(layer);
}

/// Shader variant of a weight type: "embed_q4_1".
std::string weight_shader(const std::string& op, WeightType type);

/// Shader variant of a cache type: "rope_store_f16".
std::string cache_shader(const std::string& op, CacheType type);

}  // namespace canopy::vk
