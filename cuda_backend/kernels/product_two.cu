// Products of two weights of different types: queries and keys, and the values, which many files store in a finer one.

#include "cuda_backend/kernels/product.h"

namespace canopy::cuda {

CANOPY_PRODUCTS_OF_TWO(q4_k_q6_k, FormatQ4K, FormatQ6K)
CANOPY_PRODUCTS_OF_TWO(q5_k_q6_k, FormatQ5K, FormatQ6K)

}  // namespace canopy::cuda
