#pragma once
// Rows of activations in device memory: what products read, and in which units.

#include <cmath>
#include <cstdint>

#include "engine/compute/shared_code.h"

namespace canopy::cuda {

/// Columns that share a partial sum of squares.
inline constexpr uint32_t kSquareBlock = 32;
/// Columns that products take at a time.
inline constexpr uint32_t kStep = 128;

/// Activations: values [rows, stride], the columns beyond `cols` zero; sums of squares [rows, squares]. Products read
/// them as halves: half * unit, where a row's unit is a power of two (unit_of).
struct ActivationsParams {
  uint64_t values = 0;
  uint64_t squares = 0;
  uint64_t halves = 0;      // [rows, stride], in the order of half_place
  uint64_t units = 0;       // [rows]
  uint64_t next_units = 0;  // [rows]: for what is added to a residual stream next, by what the row was before; or 0
  uint32_t cols = 0;
  uint32_t stride = 0;  // cols up to a whole number of kStep
  uint32_t blocks = 0;  // of squares of a row
};

/// Where the half of column k is in its row: of each kStep columns, columns 4s ... 4s + 3 of each block of 32 follow
/// each other, those of the four blocks side by side, as lanes of a quad take them.
CANOPY_SHARED uint32_t half_place(uint32_t k) {
  return k / kStep * kStep + k / 4 % 8 * 16 + k / 32 % 4 * 4 + k % 4;
}

/// The unit of halves of a row that is normalized by `factor`, 1 / its root mean square: 2^5 to 2^6 times that mean. So
/// an element may be 2^20 times the mean that the row had when its unit was chosen, which leaves room for what a layer
/// adds, and is off by 2^-19 of the mean at most besides the rounding of a half.
CANOPY_SHARED float unit_of(float factor) {
  constexpr uint32_t above = 5, bias = 127, most = 2 * bias - 2;
  const uint32_t exponent = bits_of_float(factor) >> 23 & 255u, unit = 2 * bias + above - exponent;
  return float_of_bits((unit < most ? unit : most) << 23);
}
/// 1 / unit, exactly.
CANOPY_SHARED float inverse_of_unit(float unit) {
  return float_of_bits((254u << 23) - bits_of_float(unit));
}
/// The unit of a row whose elements have this mean of squares, which a row of zeros has, too.
CANOPY_SHARED float unit_of_squares(float mean) {
  constexpr float least = 1e-12f;
  return unit_of(1.0f / sqrtf(mean + least));
}

}  // namespace canopy::cuda
