// Products of K-quants.

#include "cuda_backend/kernels/product.h"

namespace canopy::cuda {

CANOPY_PRODUCTS(q2_k, FormatQ2K)
CANOPY_PRODUCTS(q3_k, FormatQ3K)
CANOPY_PRODUCTS(q4_k, FormatQ4K)
CANOPY_PRODUCTS(q5_k, FormatQ5K)
CANOPY_PRODUCTS(q6_k, FormatQ6K)

}  // namespace canopy::cuda
