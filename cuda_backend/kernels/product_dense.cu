// Products of weights that are not quantized.

#include "cuda_backend/kernels/product.h"

namespace canopy::cuda {

CANOPY_PRODUCTS_OF_WIDE_TYPE(f32, FormatF32)
CANOPY_PRODUCTS_OF_WIDE_TYPE(f16, FormatF16)
CANOPY_PRODUCTS_OF_WIDE_TYPE(bf16, FormatBf16)

}  // namespace canopy::cuda
