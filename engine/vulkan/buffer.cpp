#include "engine/vulkan/buffer.h"

#include <utility>

#include "engine/vulkan/context.h"

namespace canopy::vk {

Buffer::Buffer(Buffer&& other) noexcept {
  *this = std::move(other);
}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  if (this != &other) {
    reset();
    context_ = std::exchange(other.context_, nullptr);
    handle_ = std::exchange(other.handle_, VK_NULL_HANDLE);
    block_ = std::move(other.block_);
    block_offset_ = std::exchange(other.block_offset_, 0);
    bytes_ = std::exchange(other.bytes_, 0);
    mapped_ = std::exchange(other.mapped_, nullptr);
    coherent_ = other.coherent_;
    memory_flags_ = other.memory_flags_;
    kind_ = other.kind_;
  }
  return *this;
}

void Buffer::reset() {
  if (context_ == nullptr) {
    return;
  }
  Context& context = *std::exchange(context_, nullptr);
  // The memory counts as used until then.
  context.retire([&context, buffer = std::exchange(handle_, VK_NULL_HANDLE), block = std::move(block_)]() mutable {
    vkDestroyBuffer(context.device(), buffer, nullptr);
    block.reset();
  });
  block_.reset();
  mapped_ = nullptr;
  bytes_ = 0;
}

MemoryBlock::~MemoryBlock() {
  if (handle_ == VK_NULL_HANDLE) return;
  vkFreeMemory(context_.device(), handle_, nullptr);  // unmaps
  context_.forget_block(*this);
}

}  // namespace canopy::vk
