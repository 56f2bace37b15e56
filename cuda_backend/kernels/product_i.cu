// Products of types whose codes are places in a table.

#include "cuda_backend/kernels/product.h"

namespace canopy::cuda {

CANOPY_PRODUCTS(iq4_nl, FormatIq4Nl)
CANOPY_PRODUCTS(iq4_xs, FormatIq4Xs)
CANOPY_PRODUCTS(mxfp4, FormatMxfp4)

}  // namespace canopy::cuda
