// The kernels that are others where tensor cores add slowly, for the host: the same files once more, under another
// name, as a program has both.

#define CANOPY_HOST_ARCHITECTURE ::canopy::host_gpu::kSlowlyAdding
#define cuda cuda_slowly_adding

#include "cuda_backend/kernels/experts.cu"
#include "cuda_backend/kernels/peak.cu"
#include "cuda_backend/kernels/product_i.cu"
#include "cuda_backend/kernels/product_k.cu"
#include "cuda_backend/kernels/product_two.cu"
#include "cuda_backend/kernels/product_x.cu"

namespace canopy::host_gpu {

void register_slowly_adding_kernels() {}

}  // namespace canopy::host_gpu
