#pragma once
// Memory of a device: which type a buffer lies in, the blocks that are allocated, the buffers in them, and the
// budget. The memory of a Context is implemented here.

#include <volk.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

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

// Which memory type a buffer lives in. A pure function, so that every odd heap layout can be tested without a device.

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

// One allocation of memory, which one buffer or several lie in.

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

// A buffer and the memory behind it.

/// Owns a VkBuffer with its share of a block of memory; made by Context::create_buffer or a BufferArena. Usable as
/// storage, uniform, indirect and transfer buffer. Move-only. When it goes while the device still uses it, the
/// memory is freed once the device is done. Must not outlive its Context.
class Buffer {
 public:
  Buffer() = default;
  ~Buffer() { reset(); }
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;

  explicit operator bool() const { return handle_ != VK_NULL_HANDLE; }
  VkBuffer handle() const { return handle_; }
  /// The bytes that were asked for; its share of the memory may be larger.
  uint64_t bytes() const { return bytes_; }
  BufferKind kind() const { return kind_; }
  /// The bytes as the host sees them, or empty if they are not mapped. Reading after a wait and writing before a submit
  /// is safe when `coherent()`; otherwise go through Context::upload and download.
  std::span<std::byte> mapped() const { return {mapped_, mapped_ == nullptr ? 0 : static_cast<size_t>(bytes_)}; }
  bool coherent() const { return coherent_; }

  void reset();

 private:
  friend class Context;

  Context* context_ = nullptr;
  VkBuffer handle_ = VK_NULL_HANDLE;
  std::shared_ptr<MemoryBlock> block_;
  uint64_t block_offset_ = 0;  // where its bytes start there: at a whole atom of flushes
  uint64_t bytes_ = 0;
  std::byte* mapped_ = nullptr;
  bool coherent_ = false;
  VkMemoryPropertyFlags memory_flags_ = 0;
  BufferKind kind_ = BufferKind::device;
};

/// Bytes of a buffer from `offset`, and where on the host they go.
struct Download {
  const Buffer* from = nullptr;
  uint64_t offset = 0;
  std::span<std::byte> to;
};

}  // namespace canopy::vk
