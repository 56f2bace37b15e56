#pragma once
// Counts what is made with a Vulkan device: memory, buffers, pools, descriptor sets, fences, pipelines, recordings.
// volk's entry points are plain pointers, so a test can replace them.

#include <volk.h>

#include <array>
#include <cstdint>
#include <string>

namespace canopy::vk::testing {

template <class Function, Function* entry>
class CountedEntry;

/// Counts the calls of one entry point while it exists. One at a time, and no device may be opened meanwhile.
template <class Result, class... Arguments, Result(VKAPI_PTR** entry)(Arguments...)>
class CountedEntry<Result(VKAPI_PTR*)(Arguments...), entry> {
 public:
  CountedEntry() {
    saved_ = *entry;
    count_ = 0;
    *entry = [](Arguments... arguments) -> Result {
      ++count_;
      return saved_(arguments...);
    };
  }
  ~CountedEntry() { *entry = saved_; }
  CountedEntry(const CountedEntry&) = delete;
  CountedEntry& operator=(const CountedEntry&) = delete;

  uint64_t count() const { return count_; }

 private:
  static inline Result(VKAPI_PTR* saved_)(Arguments...) = nullptr;
  static inline uint64_t count_ = 0;
};

class CreationHook {
 public:
  /// "2 of vkCreateFence, 1 of vkAllocateMemory"; empty if nothing was made since it exists.
  std::string made() const {
    std::string text;
    const auto add = [&](const char* name, uint64_t count) {
      if (count > 0) text += (text.empty() ? "" : ", ") + std::to_string(count) + " of " + name;
    };
    add("vkAllocateMemory", memory_.count());
    add("vkCreateBuffer", buffers_.count());
    add("vkCreateCommandPool", pools_.count());
    add("vkBeginCommandBuffer", recordings_.count());
    add("vkCreateDescriptorPool", set_pools_.count());
    add("vkAllocateDescriptorSets", sets_.count());
    add("vkCreateComputePipelines", pipelines_.count());
    add("vkCreateQueryPool", queries_.count());
    add("vkCreateFence", fences_.count());
    return text;
  }

 private:
  CountedEntry<PFN_vkAllocateMemory, &vkAllocateMemory> memory_;
  CountedEntry<PFN_vkCreateBuffer, &vkCreateBuffer> buffers_;
  CountedEntry<PFN_vkCreateCommandPool, &vkCreateCommandPool> pools_;
  CountedEntry<PFN_vkBeginCommandBuffer, &vkBeginCommandBuffer> recordings_;
  CountedEntry<PFN_vkCreateDescriptorPool, &vkCreateDescriptorPool> set_pools_;
  CountedEntry<PFN_vkAllocateDescriptorSets, &vkAllocateDescriptorSets> sets_;
  CountedEntry<PFN_vkCreateComputePipelines, &vkCreateComputePipelines> pipelines_;
  CountedEntry<PFN_vkCreateQueryPool, &vkCreateQueryPool> queries_;
  CountedEntry<PFN_vkCreateFence, &vkCreateFence> fences_;
};

}  // namespace canopy::vk::testing
