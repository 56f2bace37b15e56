#pragma once
// What the Vulkan device hands out behind the opaque types of engine/compute.

#include <vector>

#include "engine/compute/types.h"
#include "engine/vulkan/buffer.h"
#include "engine/vulkan/weight_layout.h"

namespace canopy::vk {

class VulkanBuffer : public canopy::Buffer {
 public:
  VulkanBuffer(vk::Buffer memory, uint64_t bytes) : buffer(std::move(memory)), bytes_(bytes) {}
  uint64_t bytes() const override { return bytes_; }

  vk::Buffer buffer;
  BufferView texels;  // of four words; empty where storage reads are used

 private:
  uint64_t bytes_;
};

class VulkanActivations : public canopy::Activations {
 public:
  VulkanActivations(uint32_t max_width, uint32_t cols) : Activations(max_width, cols) {}

  /// Partial sums of squares of one row, and where they start in `squares`, in floats.
  uint32_t partials() const { return (cols() + 3) / 4; }
  uint32_t partial_base() const { return max_width(); }

  Buffer values;      // see activation_layout.h
  BufferView texels;  // of four words; empty where uniform bindings are used
  Buffer squares;     // [max_width] totals, [max_width, partials] partial sums
  Buffer counters;    // uint32 [max_width], 0 between uses
};

class VulkanKv : public canopy::KvLayer {
 public:
  explicit VulkanKv(const KvShape& shape) : shape(shape) {}

  KvShape shape;
  Buffer keys;
  Buffer values;
  BufferView key_texels;  // of four words; empty where storage reads are used
  BufferView value_texels;
};

struct WeightShard {
  WeightShardLayout layout;
  Buffer units;
  Buffer scales;           // empty for types without scales
  BufferView unit_texels;  // empty where storage reads are used
  BufferView scale_texels;
};

class VulkanWeight : public canopy::Weight {
 public:
  using Weight::Weight;
  std::vector<WeightShard> shards;
};

}  // namespace canopy::vk
