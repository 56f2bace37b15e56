#pragma once
// Buffers that are made one after the other and go together, such as a model's weights, in few allocations.

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "engine/compute/block_runs.h"
#include "engine/vulkan/context.h"

namespace canopy::vk {

/// Knows beforehand what will be asked for, so that a block is as large as what comes to lie in it and no memory is
/// left over. A block is freed when its last buffer is gone, so what a load has made before it fails goes with its
/// buffers: the arena itself holds nothing.
class BufferArena {
 public:
  /// Buffers of these bytes, in this order. The context must outlive it.
  BufferArena(Context& context, std::vector<uint64_t> expected)
      : context_(context), expected_(std::move(expected)), most_(context.max_block()) {}

  /// A buffer of BufferKind::device. Those expected lie in blocks of at most Context::max_block() bytes (a larger
  /// buffer in one of its own), or in smaller ones where so much is not to be had at once; one of another size than
  /// expected gets memory of its own. Throws what Context::create_buffer throws.
  Buffer create(uint64_t bytes, std::string_view name);

 private:
  uint64_t share(uint64_t bytes) const { return (bytes + alignment_ - 1) / alignment_ * alignment_; }
  std::shared_ptr<MemoryBlock> next_block(const VkMemoryRequirements& needs, std::string_view name);

  Context& context_;
  std::vector<uint64_t> expected_;
  size_t next_ = 0;  // of expected_
  uint64_t most_;    // bytes of a block
  uint64_t alignment_ = 1;
  std::weak_ptr<MemoryBlock> block_;
  uint64_t taken_ = 0;  // bytes of it
};

}  // namespace canopy::vk
