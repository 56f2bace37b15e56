#pragma once
// Measures what a GPU reaches in reading memory and in multiply-adds, which its kernels are compared with.

#include <cstdint>
#include <memory>
#include <string>

#include "engine/compute/types.h"
#include "engine/cuda_backend/context.h"

namespace canopy::cuda {

/// The fastest of several multiply-add kernels, prepared. Takes half a second to make; the context must outlive it.
class FmaProbe {
 public:
  explicit FmaProbe(Context& context);

  /// GFLOP/s of the best run while choosing the kernel.
  double best() const { return best_; }
  /// GFLOP/s of a loop over 32 sums, not unrolled.
  double plain() const { return plain_; }
  /// GFLOP/s of one more run of some 30 ms: what the GPU reaches at this moment.
  double run();

 private:
  double try_kernel(const std::string& kernel, uint32_t fmas);
  std::unique_ptr<Graph> recorded(const std::string& kernel, uint32_t loops);
  uint32_t blocks() const;

  Context& context_;
  Memory out_;
  std::unique_ptr<Graph> graph_;
  double flops_ = 0;  // of the graph
  double best_ = 0, plain_ = 0;
};

/// Multiply-add and read rate, each the best of several kernels and runs, by the device's clock. Takes about a second
/// and, for that long, up to 512 MiB of device memory (a quarter of what is free at most).
DevicePeak measure_peak(Context& context);

}  // namespace canopy::cuda
