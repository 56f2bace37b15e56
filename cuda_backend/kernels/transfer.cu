// What the host leaves in pinned memory for a pass, brought into the GPU's memory as the first kernel of a recording:
// so it is read over the bus once, and a pass needs no copy of its own. 16 bytes a thread.

#include "cuda_backend/kernels/common.h"

namespace canopy::cuda {

CANOPY_KERNEL(upload, UploadParams, 256) {
  const uint32_t i = gpu::block_x() * 256 + gpu::thread();
  const Span<const Unit> from{p.from};
  const Span<Unit> to{p.to};
  if (i < p.units) to[i] = from[i];
}

}  // namespace canopy::cuda
