#pragma once
// Sums that the three linear ops share.

#include <cstdint>
#include <vector>

#include "tests/reference/memory.h"

namespace canopy::reference {

/// sum_k a[k] * b[k] in double.
double dot(const float* a, const float* b, uint32_t count);

/// sum_k a[k]^2 in double.
inline double sum_of_squares(const float* a, uint32_t count) {
  return dot(a, a, count);
}

/// A row of activations as products with a weight read it.
class ProductInput {
 public:
  /// Row w of `in`, times the factor of its norm (eps 0: none), rounded to 8 bits where the weight asks for that.
  ProductInput(const HostActivations& in, uint32_t w, float eps, const HostWeight& weight);

  /// Its product with row r of the weight.
  double times(uint32_t r) const { return scale_ * dot(weight_.row(r), row_, weight_.cols()); }

 private:
  const HostWeight& weight_;
  const float* row_;
  double scale_;
  std::vector<float> rounded_;
};

/// Rounds each block of 32 values to whole multiples of a step: the 127th part of the block's largest magnitude, ties
/// to even, all in f32. A block with a NaN becomes NaN, one with an infinity NaN or infinite; one whose magnitudes are
/// all below 2^-100 becomes 0.
void round_to_8_bits(float* values, uint32_t count);

}  // namespace canopy::reference
