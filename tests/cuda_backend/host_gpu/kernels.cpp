// The kernels, for the host: the same files that nvcc compiles.

#include "engine/cuda_backend/kernels/attention.cu"
#include "engine/cuda_backend/kernels/embed.cu"
#include "engine/cuda_backend/kernels/experts.cu"
#include "engine/cuda_backend/kernels/head.cu"
#include "engine/cuda_backend/kernels/heads.cu"
#include "engine/cuda_backend/kernels/peak.cu"
#include "engine/cuda_backend/kernels/product_dense.cu"
#include "engine/cuda_backend/kernels/product_i.cu"
#include "engine/cuda_backend/kernels/product_k.cu"
#include "engine/cuda_backend/kernels/product_two.cu"
#include "engine/cuda_backend/kernels/product_x.cu"
#include "engine/cuda_backend/kernels/recurrence.cu"
#include "engine/cuda_backend/kernels/route.cu"
#include "engine/cuda_backend/kernels/rows.cu"
#include "engine/cuda_backend/kernels/sample.cu"
#include "engine/cuda_backend/kernels/top_k.cu"
#include "engine/cuda_backend/kernels/transfer.cu"

namespace canopy::host_gpu {

void register_slowly_adding_kernels();

void register_kernels() {
  register_slowly_adding_kernels();
}

}  // namespace canopy::host_gpu
