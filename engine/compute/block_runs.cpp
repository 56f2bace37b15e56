#include "engine/compute/block_runs.h"

#include <algorithm>

namespace canopy {

std::vector<BlockRun> block_runs(std::span<const uint64_t> buffers, uint64_t most, uint64_t alignment) {
  std::vector<BlockRun> runs;
  for (const uint64_t bytes : buffers) {
    const uint64_t share = (bytes + alignment - 1) / alignment * alignment;
    if (runs.empty() || share > most - std::min(most, runs.back().bytes)) runs.emplace_back();
    runs.back().bytes += share;
    ++runs.back().buffers;
  }
  return runs;
}

}  // namespace canopy
