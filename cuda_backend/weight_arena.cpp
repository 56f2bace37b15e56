#include "cuda_backend/weight_arena.h"

#include <algorithm>
#include <span>

#include "engine/base/error.h"
#include "engine/compute/block_runs.h"

namespace canopy::cuda {

std::shared_ptr<Memory> WeightArena::allocate(uint64_t bytes, std::string_view name) const {
  return std::make_shared<Memory>(context_, bytes, false, name, MemoryContents::undefined);
}

// Memory may be cut up, or other programs may leave less than a whole block: half as much from then on, down to one
// weight.
std::shared_ptr<Memory> WeightArena::next_block(std::string_view name) {
  for (;;) {
    const BlockRun run = block_runs(std::span(expected_).subspan(next_), most_, kAlignment).front();
    try {
      return allocate(run.bytes, name);
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::out_of_memory || run.buffers == 1) throw;
      while (most_ >= run.bytes) most_ /= 2;
    }
  }
}

MemoryShare WeightArena::create(uint64_t bytes, std::string_view name) {
  if (next_ == expected_.size() || expected_[next_] != bytes) return {allocate(bytes, name), 0};
  std::shared_ptr<Memory> block = block_.lock();
  if (block == nullptr || bytes > block->bytes() - std::min(block->bytes(), taken_)) {
    block = next_block(name);
    block_ = block;
    taken_ = 0;
  }
  ++next_;
  const uint64_t offset = taken_;
  taken_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
  return {std::move(block), offset};
}

}  // namespace canopy::cuda
