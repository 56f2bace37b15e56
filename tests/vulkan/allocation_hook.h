#pragma once
// Watches the allocations of Vulkan memory, and fails one of them. volk's entry points are plain pointers, so a test
// can replace them.

#include <volk.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace canopy::vk::testing {

/// While it exists, it knows every allocation of this process, whichever device it is of. One at a time.
class AllocationHook {
 public:
  AllocationHook() : saved_(vkAllocateMemory) {
    current() = this;
    vkAllocateMemory = [](VkDevice device, const VkMemoryAllocateInfo* info, const VkAllocationCallbacks* callbacks,
                          VkDeviceMemory* memory) { return current()->allocate(device, info, callbacks, memory); };
  }
  ~AllocationHook() { vkAllocateMemory = saved_; }
  AllocationHook(const AllocationHook&) = delete;
  AllocationHook& operator=(const AllocationHook&) = delete;

  /// Bytes of each one so far, in order; those that failed are not among them.
  std::vector<uint64_t> sizes;
  /// The allocation of this number, counted from 0, fails, and all after it too where `for_good`.
  std::optional<uint64_t> failing;
  bool for_good = false;
  /// Allocations of more bytes fail.
  std::optional<uint64_t> most;

 private:
  static AllocationHook*& current() {
    static AllocationHook* hook = nullptr;
    return hook;
  }

  VkResult allocate(VkDevice device, const VkMemoryAllocateInfo* info, const VkAllocationCallbacks* callbacks,
                    VkDeviceMemory* memory) {
    const uint64_t number = count_++;
    const bool fails = failing && (for_good ? number >= *failing : number == *failing);
    if (fails || (most && info->allocationSize > *most)) return VK_ERROR_OUT_OF_DEVICE_MEMORY;
    const VkResult result = saved_(device, info, callbacks, memory);
    if (result == VK_SUCCESS) sizes.push_back(info->allocationSize);
    return result;
  }

  PFN_vkAllocateMemory saved_;
  uint64_t count_ = 0;
};

}  // namespace canopy::vk::testing
