#pragma once
// Which memory type a buffer lives in. A pure function, so that every odd heap layout can be tested without a device.

#include <volk.h>

#include <cstdint>
#include <optional>

namespace canopy::vk {

enum class BufferKind {
  device,      // weights, activations, K/V: fastest for the device; mapped too where memory is unified
  host_read,   // results the CPU reads: cached
  host_write,  // inputs that the CPU writes and the device reads once: coherent
  input,       // small inputs that the CPU writes and the device reads often: the device's own if the CPU can write it
};

/// The index of the best memory type among those that `allowed_types` (VkMemoryRequirements::memoryTypeBits) permits
/// and whose heap holds at least `bytes`, or nothing if there is none.
/// `unified` says that the device's own memory is the host's (integrated and software devices).
/// Lazily allocated, protected and device-coherent (uncached) types are never chosen.
std::optional<uint32_t> select_memory_type(const VkPhysicalDeviceMemoryProperties& memory, uint32_t allowed_types,
                                           BufferKind kind, uint64_t bytes, bool unified);

/// Whether the host should read `bytes` where they are, in memory of these properties, rather than from a copy that the
/// device makes in memory of the kind host_read. Reading uncached memory (write-combined, as integrated devices give
/// their own) takes some ten nanoseconds a word: only a few results are worth that.
bool reads_in_place(VkMemoryPropertyFlags flags, uint64_t bytes);

}  // namespace canopy::vk
