// rope_store: norm and rotation of q and K heads, norm of V heads, K and V to their slots. One warp per (head, row).

#include "cuda_backend/kernels/cache.h"

namespace canopy::cuda {

CANOPY_KERNEL(rope_store, RopeStoreParams, 32) {
  finish_head<true>(p, gpu::block_x(), gpu::block_y(), {0, kMostHeadDim});
}

}  // namespace canopy::cuda
