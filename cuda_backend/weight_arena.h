#pragma once
// Memory for the weights of a load in few allocations.

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "cuda_backend/memory.h"

namespace canopy::cuda {

/// Knows beforehand what will be asked for, so that a block is as large as what comes to lie in it. A block is freed
/// when the last weight in it is gone: the arena itself holds nothing.
class WeightArena {
 public:
  static constexpr uint64_t kMostBlockBytes = uint64_t{1} << 30;
  static constexpr uint64_t kAlignment = 256;

  /// Weights of these bytes, in this order. The context must outlive it.
  WeightArena(Context& context, std::vector<uint64_t> expected) : context_(context), expected_(std::move(expected)) {}

  /// Memory with undefined contents. What was expected lies in blocks of at most kMostBlockBytes (a larger weight in
  /// one of its own), or in smaller ones where so much is not to be had at once; a weight of another size than expected
  /// gets memory of its own. Throws what Memory throws.
  MemoryShare create(uint64_t bytes, std::string_view name);

 private:
  std::shared_ptr<Memory> allocate(uint64_t bytes, std::string_view name) const;
  std::shared_ptr<Memory> next_block(std::string_view name);

  Context& context_;
  std::vector<uint64_t> expected_;
  size_t next_ = 0;  // of expected_
  uint64_t most_ = kMostBlockBytes;
  std::weak_ptr<Memory> block_;
  uint64_t taken_ = 0;  // bytes of it
};

}  // namespace canopy::cuda
