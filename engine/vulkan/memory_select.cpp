#include "engine/vulkan/memory_select.h"

namespace canopy::vk {
namespace {

constexpr VkMemoryPropertyFlags never = VK_MEMORY_PROPERTY_LAZILY_ALLOCATED_BIT | VK_MEMORY_PROPERTY_PROTECTED_BIT |
                                        VK_MEMORY_PROPERTY_DEVICE_COHERENT_BIT_AMD |
                                        VK_MEMORY_PROPERTY_DEVICE_UNCACHED_BIT_AMD |
                                        VK_MEMORY_PROPERTY_RDMA_CAPABLE_BIT_NV;

// Higher is better; negative: not for this kind. Each wish outweighs all the wishes after it.
int score(VkMemoryPropertyFlags flags, BufferKind kind, bool unified) {
  const bool local = (flags & VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT) != 0;
  const bool visible = (flags & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT) != 0;
  const bool coherent = (flags & VK_MEMORY_PROPERTY_HOST_COHERENT_BIT) != 0;
  const bool cached = (flags & VK_MEMORY_PROPERTY_HOST_CACHED_BIT) != 0;
  switch (kind) {
    case BufferKind::device:
      if (unified) {
        return 8 * local + 4 * visible + 2 * coherent + 1 * cached;
      }
      // On a discrete card mapped device memory is a small window; leave it to others.
      return 2 * local + 1 * !visible;
    case BufferKind::host_read: return visible ? 4 * cached + 2 * coherent + 1 * !local : -1;
    case BufferKind::host_write: return visible ? 4 * coherent + 2 * !local + 1 * !cached : -1;
    case BufferKind::input: return visible ? 4 * coherent + 2 * local + 1 * !cached : -1;
  }
  return -1;
}

}  // namespace

std::optional<uint32_t> select_memory_type(const VkPhysicalDeviceMemoryProperties& memory, uint32_t allowed_types,
                                           BufferKind kind, uint64_t bytes, bool unified) {
  std::optional<uint32_t> best;
  int best_score = -1;
  for (uint32_t i = 0; i < memory.memoryTypeCount; ++i) {
    const VkMemoryType& type = memory.memoryTypes[i];
    if ((allowed_types >> i & 1) == 0 || (type.propertyFlags & never) != 0 ||
        memory.memoryHeaps[type.heapIndex].size < bytes) {
      continue;
    }
    const int value = score(type.propertyFlags, kind, unified);
    if (value > best_score) {  // ties: the first, which drivers list first because it is faster
      best = i;
      best_score = value;
    }
  }
  return best;
}

bool reads_in_place(VkMemoryPropertyFlags flags, uint64_t bytes) {
  constexpr uint64_t few = 1024;  // read in the time that a submission takes
  if ((flags & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT) == 0) return false;
  return (flags & VK_MEMORY_PROPERTY_HOST_CACHED_BIT) != 0 || bytes <= few;
}

}  // namespace canopy::vk
