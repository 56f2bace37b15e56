// Products of types with blocks of 32 columns.

#include "cuda_backend/kernels/product.h"

namespace canopy::cuda {

CANOPY_PRODUCTS(q8_0, FormatQ80)
CANOPY_PRODUCTS(q4_0, FormatQ40)
CANOPY_PRODUCTS(q4_1, FormatQ41)
CANOPY_PRODUCTS(q5_0, FormatQ50)
CANOPY_PRODUCTS(q5_1, FormatQ51)

}  // namespace canopy::cuda
