#include "engine/vulkan/buffer_arena.h"

#include <algorithm>

namespace canopy::vk {

// A heap may be cut up, or other programs may leave less than a whole block: half as much from then
// on, down to one buffer.
std::shared_ptr<MemoryBlock> BufferArena::next_block(const VkMemoryRequirements& needs, std::string_view name) {
  for (;;) {
    const BlockRun run = block_runs(std::span(expected_).subspan(next_), most_, alignment_).front();
    try {
      return context_.allocate_block(needs, BufferKind::device, std::max(run.bytes, needs.size), name);
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::out_of_memory || run.buffers == 1) throw;
      while (most_ >= run.bytes) most_ /= 2;
    }
  }
}

Buffer BufferArena::create(uint64_t bytes, std::string_view name) {
  if (next_ == expected_.size() || expected_[next_] != bytes) {
    return context_.create_buffer(BufferKind::device, bytes, name);
  }
  Buffer buffer = context_.bare_buffer(BufferKind::device, bytes, name);
  const VkMemoryRequirements needs = context_.requirements(buffer);
  alignment_ = std::max({alignment_, needs.alignment, context_.limits().atom_size});
  uint64_t offset = share(taken_);
  std::shared_ptr<MemoryBlock> block = block_.lock();
  const bool fits = block != nullptr && (needs.memoryTypeBits & block->type_bit()) != 0 &&
                    needs.size <= block->bytes() - std::min(block->bytes(), offset);
  if (!fits) {
    block = next_block(needs, name);
    block_ = block;
    offset = 0;
  }
  ++next_;
  context_.place(buffer, std::move(block), offset, name);
  taken_ = offset + share(bytes);
  return buffer;
}

}  // namespace canopy::vk
