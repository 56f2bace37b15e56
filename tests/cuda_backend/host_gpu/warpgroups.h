#pragma once
// Products of warpgroups (cuda_backend/kernels/nvcc/gpu.h) on the host. They are computed as late as they may
// be, when a thread waits for them, and until then every mistake is an error that a GPU would answer with wrong sums:
// sums or operands that are touched too early, rows in shared memory that were not shown, warps of a group that do
// different things.

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "tests/cuda_backend/host_gpu/block.h"

namespace canopy::host_gpu {

/// Of a block.
class Warpgroups {
 public:
  static constexpr uint32_t kWarps = 4, kColumns = 64;
  /// Sums of a lane: as multiply() has them, of each eight columns.
  static constexpr uint32_t kSums = kColumns / 8 * 4;

  /// For a block of `threads`, whose shared memory that is.
  void reset(uint32_t threads, std::span<const std::byte> shared);
  void show(uint32_t thread) { threads_[thread].has_shown = true; }
  /// All threads are at a barrier.
  void meet();
  void begin_group(uint32_t thread) { threads_[thread].in_group = true; }
  void begin_product(uint32_t thread, float* sums, const uint32_t* a, uint32_t b);
  void end_group(uint32_t thread);
  /// Computes what the threads of a warp have begun, but for their last `pending` groups. All have come here.
  void finish(uint32_t warp, uint32_t pending, WarpOperation multiply);
  /// A thread has ended.
  void end(uint32_t thread) const;

 private:
  struct Product {
    float* sums;
    const uint32_t* a_at;
    uint32_t a[4];
    uint32_t b;
    std::vector<std::byte> rows;  // what `b` was, of the first lane of a warp
  };
  struct SumsUnderWay {
    float values[kSums];
    uint32_t products = 0;
  };
  struct Thread {
    std::vector<Product> products;  // that are under way
    std::vector<size_t> groups;     // their sizes
    size_t begun = 0;               // that belong to no group yet
    std::map<float*, SumsUnderWay> sums;
    bool has_shown = false, in_group = false;
  };

  void compute(uint32_t warp, WarpOperation multiply);
  std::vector<std::byte> rows_of(uint32_t b) const;

  std::vector<Thread> threads_;
  std::vector<std::vector<uint32_t>> operands_;  // of each warp since the last barrier
  std::span<const std::byte> shared_;
  bool all_shown_ = false;
};

}  // namespace canopy::host_gpu
