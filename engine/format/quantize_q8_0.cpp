// Q8_0: 32 signed bytes under one half-precision scale (dequantize_simple.cpp has the layout).

#include <algorithm>

#include "engine/format/quantize_block.h"

namespace canopy {

void write_q8_0(ValuesOf<TensorType::q8_0> values, BlockOf<TensorType::q8_0>& block) {
  require_finite(values, TensorType::q8_0);
  float largest = 0;
  for (const float value : values) largest = std::max(largest, std::abs(value));
  uint16_t scale = scale_to_f16(largest / 127, largest, TensorType::q8_0);
  // Rounded down, a subnormal scale may miss the largest value by more than half a step; the next half does not.
  // (It is finite: between normal halves, rounding loses less than half a step in 127.)
  if (f16_to_f32(scale) * 127.5f < largest) ++scale;
  put_u16(block, 0, scale);
  if (scale == 0) return std::fill(block.begin() + 2, block.end(), uint8_t{0});
  const float d = f16_to_f32(scale);
  for (size_t i = 0; i < values.size(); ++i) {
    const float steps = values[i] / d;
    // Halves away from zero, as ggml rounds.
    const auto q = static_cast<int>(steps + (steps < 0 ? -0.5f : 0.5f));
    block[2 + i] = static_cast<uint8_t>(std::clamp(q, -127, 127));
  }
}

}  // namespace canopy
