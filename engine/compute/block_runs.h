#pragma once
// How buffers that go together, such as a model's weights, share few allocations.

#include <cstdint>
#include <span>
#include <vector>

namespace canopy {

/// Buffers that lie in one block.
struct BlockRun {
  uint64_t bytes = 0;
  uint64_t buffers = 0;
  bool operator==(const BlockRun&) const = default;
};

/// The blocks of at most `most` bytes that buffers of these bytes, in this order, come to lie in; a buffer beyond that
/// has a block of its own. Each buffer starts at a multiple of `alignment`.
std::vector<BlockRun> block_runs(std::span<const uint64_t> buffers, uint64_t most, uint64_t alignment);

}  // namespace canopy
