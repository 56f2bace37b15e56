#pragma once
// A buffer and the memory behind it.

#include <volk.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "engine/vulkan/memory_block.h"
#include "engine/vulkan/memory_select.h"

namespace canopy::vk {

class Context;

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
