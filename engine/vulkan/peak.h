#pragma once
// Measures what a device reaches: reads, multiply-adds, matrix cores, and uploads.

#include <memory>

#include "engine/compute/types.h"
#include "engine/vulkan/context.h"
#include "engine/vulkan/physical_device.h"

namespace canopy::vk {

// Peak bandwidth and arithmetic, by multiply-adds and on matrix cores, which the device's kernels are compared with.

/// The fastest of several multiply-add kernels, prepared. Takes half a second to make; the context must outlive it.
class FmaProbe {
 public:
  explicit FmaProbe(Context& context);
  ~FmaProbe();

  /// GFLOP/s of the best run while choosing the kernel.
  double best() const { return best_; }
  /// GFLOP/s of a plain loop over 32 sums, not unrolled.
  double plain() const { return plain_; }
  /// GFLOP/s of one more run of some 30 ms: what the device reaches at this moment.
  double run();

 private:
  void try_kernel(uint32_t chains, uint32_t steps);

  Context& context_;
  Buffer numbers_, out_;
  std::unique_ptr<CommandList> list_;
  double flops_ = 0;
  double best_ = 0;
  double plain_ = 0;
};

/// Multiply-add and read rate, each the best of several kernels and runs, and that of products of `matrix`, if not
/// null: halves with sums in f32, in subgroups whose size can be pinned. Takes about a second and, for that long, up to
/// 256 MiB of device memory (64 MiB on a software device, a quarter of what is free at most). Device timestamps where
/// the queue has them, else wall time. Throws what Context::run throws.
DevicePeak measure_peak(Context& context, const MatrixShape* matrix = nullptr);

// Measures how fast bytes reach a device's memory when nothing else is done.

/// GB/s (10^9) of copies out of an UploadRing that is filled already; where the host sees the device's memory, of
/// memcpy on all cores into it. The best of several runs, which take some 100 ms and 64 MiB. Throws what
/// Context::submit throws.
double measure_upload(Context& context);

}  // namespace canopy::vk
