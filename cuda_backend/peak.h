#pragma once
// Measures what a GPU reaches in reading memory, in multiply-adds and on tensor cores, which its kernels are compared
// with.

#include <cstdint>
#include <memory>
#include <string>

#include "cuda_backend/context.h"
#include "engine/compute/types.h"

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

  Context& context_;
  Memory out_;
  std::unique_ptr<Graph> graph_;
  double flops_ = 0;  // of the graph
  double best_ = 0, plain_ = 0;
};

/// Read rate, and that of multiply-adds and of tensor cores, each the best of several runs, by the device's clock.
/// `warpgroups`: whether products are made by those. Takes about a second and, for that long, up to 512 MiB of device
/// memory (a quarter of what is free at most).
DevicePeak measure_peak(Context& context, bool warpgroups);

}  // namespace canopy::cuda
