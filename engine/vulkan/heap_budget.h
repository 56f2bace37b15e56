#pragma once

#include <algorithm>
#include <cstdint>

namespace canopy::vk {

/// Bytes of a heap that this process may hold: the driver's word (VK_EXT_memory_budget), but never more than the heap
/// has, which Intel's drivers promise.
constexpr uint64_t believable_budget(uint64_t heap_bytes, uint64_t driver_budget) {
  return std::min(heap_bytes, driver_budget);
}

/// Bytes of it in use by this process: what the driver counts, or what we know of, whichever is more.
constexpr uint64_t believable_usage(uint64_t allocated, uint64_t driver_usage) {
  return std::max(allocated, driver_usage);
}

}  // namespace canopy::vk
