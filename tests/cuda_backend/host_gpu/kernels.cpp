// The kernels, for the host: the same files that nvcc compiles.

#include "cuda_backend/kernels/attention.cu"
#include "cuda_backend/kernels/embed.cu"
#include "cuda_backend/kernels/experts.cu"
#include "cuda_backend/kernels/head.cu"
#include "cuda_backend/kernels/heads.cu"
#include "cuda_backend/kernels/peak.cu"
#include "cuda_backend/kernels/product_dense.cu"
#include "cuda_backend/kernels/product_i.cu"
#include "cuda_backend/kernels/product_k.cu"
#include "cuda_backend/kernels/product_two.cu"
#include "cuda_backend/kernels/product_x.cu"
#include "cuda_backend/kernels/recurrence.cu"
#include "cuda_backend/kernels/route.cu"
#include "cuda_backend/kernels/rows.cu"
#include "cuda_backend/kernels/sample.cu"
#include "cuda_backend/kernels/top_k.cu"
#include "cuda_backend/kernels/transfer.cu"

namespace canopy::host_gpu {

void register_slowly_adding_kernels();

void register_kernels() {
  register_slowly_adding_kernels();
}

}  // namespace canopy::host_gpu
