#pragma once
// For functions that run on the host and in CUDA kernels: how they are declared, and what the two spell differently.

#include <bit>
#include <cstdint>

#ifdef __CUDACC__
#define CANOPY_SHARED __host__ __device__ __forceinline__
#else
#define CANOPY_SHARED inline
#endif

namespace canopy {

CANOPY_SHARED uint32_t bits_of_float(float x) {
#ifdef __CUDA_ARCH__
  return __float_as_uint(x);
#else
  return std::bit_cast<uint32_t>(x);
#endif
}
CANOPY_SHARED float float_of_bits(uint32_t bits) {
#ifdef __CUDA_ARCH__
  return __uint_as_float(bits);
#else
  return std::bit_cast<float>(bits);
#endif
}

/// Of 32 bits: 32 for 0.
CANOPY_SHARED uint32_t leading_zeros(uint32_t x) {
#ifdef __CUDA_ARCH__
  return static_cast<uint32_t>(__clz(static_cast<int>(x)));
#else
  return static_cast<uint32_t>(std::countl_zero(x));
#endif
}

}  // namespace canopy
