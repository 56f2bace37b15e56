#pragma once
// The kernels of products, by type of weight and rows of the pass at a time.

#include "cuda_backend/kernels/product_narrow.h"
#include "cuda_backend/kernels/product_wide.h"

/// product_NAME_8, _16, _32 for weights of type F, the second of type SECOND.
#define CANOPY_PRODUCTS_TO_32(NAME, F, SECOND)                          \
  CANOPY_STREAMING_KERNEL(product_##NAME##_8, ProductParams, 256, 2) {  \
    narrow_products<F, SECOND>(p);                                      \
  }                                                                     \
  CANOPY_STREAMING_KERNEL(product_##NAME##_16, ProductParams, 128, 4) { \
    wide_products<F, SECOND, 2>(p);                                     \
  }                                                                     \
  CANOPY_STREAMING_KERNEL(product_##NAME##_32, ProductParams, 128, 4) { \
    wide_products<F, SECOND, 4>(p);                                     \
  }
/// With kManyRows.
#define CANOPY_PRODUCTS_OF_MANY_ROWS(NAME, F, SECOND)                       \
  CANOPY_STREAMING_KERNEL(product_##NAME##_16_384, ProductParams, 256, 1) { \
    wide_products_of_many_rows<F, SECOND, 2>(p);                            \
  }                                                                         \
  CANOPY_STREAMING_KERNEL(product_##NAME##_32_384, ProductParams, 256, 1) { \
    wide_products_of_many_rows<F, SECOND, 4>(p);                            \
  }
#define CANOPY_PRODUCTS_OF_64(NAME, F)                                  \
  CANOPY_STREAMING_KERNEL(product_##NAME##_64, ProductParams, 256, 2) { \
    wide_products<F, F, 8>(p);                                          \
  }
/// With kFewerWarps.
#define CANOPY_PRODUCTS_OF_64_6(NAME, F, SECOND)                          \
  CANOPY_STREAMING_KERNEL(product_##NAME##_64_6, ProductParams, 192, 2) { \
    wide_products_of_fewer_warps<F, SECOND>(p);                           \
  }
/// By warpgroups, with blocks of so many rows of the weight.
#define CANOPY_PRODUCTS_OF_WARPGROUPS(NAME, F, SECOND)                                 \
  CANOPY_STREAMING_KERNEL(product_##NAME##_64_warpgroups_384, ProductParams, 256, 1) { \
    warpgroup_products<F, SECOND, kManyRows>(p);                                       \
  }                                                                                    \
  CANOPY_STREAMING_KERNEL(product_##NAME##_64_warpgroups_256, ProductParams, 256, 2) { \
    warpgroup_products<F, SECOND, kTwoWarpgroups>(p);                                  \
  }                                                                                    \
  CANOPY_STREAMING_KERNEL(product_##NAME##_64_warpgroups_192, ProductParams, 128, 3) { \
    warpgroup_products<F, SECOND, kOneWarpgroup>(p);                                   \
  }
#define CANOPY_PRODUCTS(NAME, F)           \
  CANOPY_PRODUCTS_TO_32(NAME, F, F)        \
  CANOPY_PRODUCTS_OF_MANY_ROWS(NAME, F, F) \
  CANOPY_PRODUCTS_OF_64(NAME, F)           \
  CANOPY_PRODUCTS_OF_64_6(NAME, F, F)      \
  CANOPY_PRODUCTS_OF_WARPGROUPS(NAME, F, F)
/// Of types of which no block has more than kFewerWarps.
#define CANOPY_PRODUCTS_OF_WIDE_TYPE(NAME, F) \
  CANOPY_PRODUCTS_TO_32(NAME, F, F)           \
  CANOPY_PRODUCTS_OF_64(NAME, F)
/// Two types take more registers than 64 rows of the pass leave to eight warps.
#define CANOPY_PRODUCTS_OF_TWO(NAME, F, SECOND) \
  CANOPY_PRODUCTS_TO_32(NAME, F, SECOND)        \
  CANOPY_PRODUCTS_OF_MANY_ROWS(NAME, F, SECOND) \
  CANOPY_PRODUCTS_OF_64_6(NAME, F, SECOND)      \
  CANOPY_PRODUCTS_OF_WARPGROUPS(NAME, F, SECOND)
