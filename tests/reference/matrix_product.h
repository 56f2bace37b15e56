#pragma once
// Sums that the three linear ops share.

#include <cstdint>

namespace canopy::reference {

/// sum_k a[k] * b[k] in double.
double dot(const float* a, const float* b, uint32_t count);

/// sum_k a[k]^2 in double.
inline double sum_of_squares(const float* a, uint32_t count) {
  return dot(a, a, count);
}

}  // namespace canopy::reference
