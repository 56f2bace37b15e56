#pragma once
// One allocation of memory, which one buffer or several lie in.

#include <volk.h>

#include <cstddef>
#include <cstdint>

#include "engine/vulkan/memory_select.h"

namespace canopy::vk {

class Context;

/// Made by Context::allocate_block, shared by the buffers in it and freed with the last of them. Must not outlive its
/// Context.
class MemoryBlock {
 public:
  explicit MemoryBlock(Context& context) : context_(context) {}
  ~MemoryBlock();
  MemoryBlock(const MemoryBlock&) = delete;
  MemoryBlock& operator=(const MemoryBlock&) = delete;

  VkDeviceMemory handle() const { return handle_; }
  uint64_t bytes() const { return bytes_; }
  /// A bit for its memory type, as in VkMemoryRequirements::memoryTypeBits.
  uint32_t type_bit() const { return 1u << type_; }
  VkMemoryPropertyFlags flags() const { return flags_; }
  std::byte* mapped() const { return mapped_; }  // null where the host does not see it

 private:
  friend class Context;

  Context& context_;
  VkDeviceMemory handle_ = VK_NULL_HANDLE;
  uint64_t bytes_ = 0;
  uint32_t type_ = 0;
  VkMemoryPropertyFlags flags_ = 0;
  std::byte* mapped_ = nullptr;
  bool in_device_heap_ = false;  // counts as memory of the device
};

}  // namespace canopy::vk
