#pragma once
// The Vulkan implementations of the handle types of engine/compute: buffers, weights, activations, K/V layers.

#include <memory>
#include <utility>
#include <vector>

#include "engine/compute/types.h"
#include "engine/vulkan/activation_layout.h"
#include "engine/vulkan/buffer.h"
#include "engine/vulkan/command_list.h"
#include "engine/vulkan/weight_layout.h"

namespace canopy::vk {

class VulkanBuffer : public canopy::Buffer {
 public:
  VulkanBuffer(vk::Buffer memory, uint64_t bytes)
      : own_(std::move(memory)), memory_(&own_), bytes_(bytes), bound_bytes_(own_.bytes()) {}
  /// A part of another buffer, which must outlive it.
  VulkanBuffer(const VulkanBuffer& whole, uint64_t offset, uint64_t bytes)
      : memory_(whole.memory_), offset_(whole.offset_ + offset), bytes_(bytes), bound_bytes_(bytes) {}
  uint64_t bytes() const override { return bytes_; }

  /// Where its bytes lie: from offset() on, bound_bytes() of them in a binding (of a whole buffer all that was
  /// allocated).
  const vk::Buffer& memory() const { return *memory_; }
  uint64_t offset() const { return offset_; }
  uint64_t bound_bytes() const { return bound_bytes_; }

 private:
  vk::Buffer own_;  // empty in a part
  const vk::Buffer* memory_ = nullptr;
  uint64_t offset_ = 0;
  uint64_t bytes_ = 0;
  uint64_t bound_bytes_ = 0;
};

class VulkanActivations : public canopy::Activations {
 public:
  VulkanActivations(uint32_t max_width, uint32_t cols)
      : Activations(max_width, cols), square_blocks(vk::square_blocks(cols)) {}

  Buffer values;           // see activation_layout.h
  uint32_t square_blocks;  // sums in `squares` that make up the sum of squares of a row
  Buffer squares;          // [max_width, square_blocks]
};

/// A layer's parts of a cache's memory.
class VulkanKv : public canopy::KvLayer {
 public:
  VulkanKv(const KvShape& shape, const Binding& keys, const Binding& values)
      : shape(shape), keys(keys), values(values) {}

  KvShape shape;
  Binding keys;
  Binding values;
};

/// Planes, which are the keys or the values of a layer: those of layer 0, then of layer 1, ... A shard has as many as
/// one binding can, so that slots of all layers are moved in few dispatches.
class VulkanKvCache : public canopy::KvCache {
 public:
  struct Shard {
    std::unique_ptr<Buffer> memory;  // [planes, plane_words]
    uint32_t planes = 0;
  };
  VulkanKvCache(std::vector<std::unique_ptr<KvLayer>> layers, std::vector<Shard> shards, const KvShape& shape,
                uint32_t plane_words)
      : KvCache(std::move(layers)), shape(shape), plane_words(plane_words), shards(std::move(shards)) {}

  KvShape shape;
  uint32_t plane_words;
  std::vector<Shard> shards;
};

struct WeightShard {
  WeightShardLayout layout;
  Buffer units;
  Buffer scales;  // empty for types without scales
};

class VulkanWeight : public canopy::Weight {
 public:
  using Weight::Weight;
  std::vector<WeightShard> shards;
};

}  // namespace canopy::vk
