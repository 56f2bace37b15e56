#pragma once
// One block at a time. Internal to quantize().

#include <cmath>
#include <cstdint>
#include <span>
#include <string>

#include "engine/base/error.h"
#include "engine/base/half.h"
#include "engine/format/dequantize_block.h"

namespace canopy {

/// The elements that become one block.
template <TensorType type>
using ValuesOf = std::span<const float, ElementsOf<type>::extent>;

void write_q8_0(ValuesOf<TensorType::q8_0> values, BlockOf<TensorType::q8_0>& block);  // quantize.h says what they
void write_q4_k(ValuesOf<TensorType::q4_k> values, BlockOf<TensorType::q4_k>& block);  // promise

/// Throws unless all values are finite.
inline void require_finite(std::span<const float> values, TensorType type) {
  for (size_t i = 0; i < values.size(); ++i) {
    if (std::isfinite(values[i])) continue;
    throw bad_input("Element " + std::to_string(i) + " of the block is " + std::to_string(values[i]) +
                    "; only finite " + "values can be stored as " + std::string(to_string(type)) + ".");
  }
}

/// A non-negative scale as a half. A scale that is not zero never becomes zero, or its whole block would.
/// Throws when it is beyond the largest half; `largest` is the value of the block that makes it so.
inline uint16_t scale_to_f16(float scale, float largest, TensorType type) {
  const uint16_t half = f32_to_f16(scale);
  if (half >= 0x7c00) {
    throw bad_input("The magnitude " + std::to_string(largest) + " is too large for " + std::string(to_string(type)) +
                    ": its block would need the scale " + std::to_string(scale) + ", and a half ends at 65504.");
  }
  return half == 0 && scale > 0 ? uint16_t{1} : half;
}

template <size_t Bytes>
void put_u16(std::array<uint8_t, Bytes>& block, size_t at, uint16_t value) {
  block[at] = static_cast<uint8_t>(value & 0xff);
  block[at + 1] = static_cast<uint8_t>(value >> 8);
}

}  // namespace canopy
