#include "engine/format/quantize.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "engine/base/error.h"
#include "engine/base/numbers.h"
#include "engine/format/dequantize.h"

namespace canopy {

namespace {

using T = TensorType;

/// The elements that become one block.
template <TensorType type>
using ValuesOf = std::span<const float, ElementsOf<type>::extent>;

/// Throws unless all values are finite.
void require_finite(std::span<const float> values, TensorType type) {
  for (size_t i = 0; i < values.size(); ++i) {
    if (std::isfinite(values[i])) continue;
    throw bad_input("Element " + std::to_string(i) + " of the block is " + std::to_string(values[i]) +
                    "; only finite values can be stored as " + std::string(to_string(type)) + ".");
  }
}

float largest_magnitude(std::span<const float> values) {
  float largest = 0;
  for (const float value : values) largest = std::max(largest, std::abs(value));
  return largest;
}

/// A non-negative scale as a half. A scale that is not zero never becomes zero, or its whole block would.
/// Throws when it is beyond the largest half; `largest` is the value of the block that makes it so.
uint16_t scale_to_f16(float scale, float largest, TensorType type) {
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

// Q8_0: 32 signed bytes under one half-precision scale (decode_q8_0() has the layout).

void write_q8_0(ValuesOf<T::q8_0> values, BlockOf<T::q8_0>& block) {
  require_finite(values, T::q8_0);
  const float largest = largest_magnitude(values);
  uint16_t scale = scale_to_f16(largest / 127, largest, T::q8_0);
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

// Q4_K: sub-blocks of 32 elements x = scale q - minimum with q from 0 to 15, scale and minimum themselves six-bit
// multiples of two halves per 256 elements (decode_with_minimums() has the layout).

using SubBlock = std::span<const float, 32>;
using Quants = std::array<float, 32>;  // whole numbers 0 to 15, as floats for the sums below

constexpr float max_quant = 15;
constexpr float max_six_bits = 63;

/// A range too small, beside magnitudes of 1 in the same block, for six bits to tell it from zero; squares of it are
/// still normal floats.
constexpr float negligible = 1e-12f;

/// x = scale q - minimum; neither is negative, as the six bits cannot be.
struct Fit {
  float scale = 0;
  float minimum = 0;
};

/// Sums term(0) to term(31) in eight lanes, a fixed order that compilers can vectorize.
template <class Term>
float sum_of(Term term) {
  std::array<float, 8> lanes = {};
  for (size_t i = 0; i < SubBlock::extent; i += lanes.size()) {
    for (size_t lane = 0; lane < lanes.size(); ++lane) lanes[lane] += term(i + lane);
  }
  float sum = 0;
  for (const float lane : lanes) sum += lane;
  return sum;
}

Quants nearest_quants(SubBlock values, Fit fit) {
  Quants quants = {};
  if (fit.scale <= 0) return quants;
  const float inverse = 1 / fit.scale;
  for (size_t i = 0; i < values.size(); ++i) {
    // Clamped before it becomes an integer, and in an order that makes 0 of what is not a number.
    const float steps = std::min(max_quant, std::max(0.0f, (values[i] + fit.minimum) * inverse));
    quants[i] = static_cast<float>(static_cast<int>(steps + 0.5f));
  }
  return quants;
}

float squared_error(SubBlock values, const Quants& quants, Fit fit) {
  return sum_of([&](size_t i) {
    const float off = fit.scale * quants[i] - fit.minimum - values[i];
    return off * off;
  });
}

/// The scale and minimum of least squared error for given quants.
Fit least_squares(SubBlock values, const Quants& quants) {
  constexpr auto n = static_cast<float>(SubBlock::extent);
  const float q = sum_of([&](size_t i) { return quants[i]; });
  const float qq = sum_of([&](size_t i) { return quants[i] * quants[i]; });
  const float x = sum_of([&](size_t i) { return values[i]; });
  const float qx = sum_of([&](size_t i) { return quants[i] * values[i]; });
  const float determinant = n * qq - q * q;
  if (determinant > 0) {
    const Fit fit{(n * qx - q * x) / determinant, (q * qx - qq * x) / determinant};
    if (fit.scale > 0 && fit.minimum >= 0) return fit;
  }
  // Without a minimum: where the best one would lie above zero, or where all quants are equal.
  return {qq > 0 ? std::max(qx / qq, 0.0f) : 0, 0};
}

/// Tries ranges a little narrower and wider than the values': clipping the outermost often pays for finer steps.
/// `values` are scaled so that the largest of the block is 1 or -1: no sum overflows.
Fit search(SubBlock values) {
  const auto [lowest, highest] = std::ranges::minmax(values);
  const float minimum = std::max(-lowest, 0.0f);
  const float range = highest + minimum;
  // The fit with a minimum alone, which is all that is needed where the elements are equal and not above zero.
  const float mean = sum_of([&](size_t i) { return values[i]; }) / static_cast<float>(values.size());
  Fit best{0, std::max(-mean, 0.0f)};
  if (range < negligible) return best;
  float best_error = squared_error(values, {}, best);
  for (int steps = 28; steps <= 34; ++steps) {  // the range in half steps; 30 is the values' own
    const Fit start{2 * range / static_cast<float>(steps), minimum};
    const Fit fit = least_squares(values, nearest_quants(values, start));
    const float error = squared_error(values, nearest_quants(values, fit), fit);
    if (error >= best_error) continue;
    best_error = error;
    best = fit;
  }
  return best;
}

/// `part` in units of `unit`, rounded into six bits.
uint8_t six_bits(float part, float unit) {
  return unit > 0 ? static_cast<uint8_t>(std::min(part / unit + 0.5f, max_six_bits)) : uint8_t{0};
}

void write_q4_k(ValuesOf<T::q4_k> values, BlockOf<T::q4_k>& block) {
  require_finite(values, T::q4_k);
  block.fill(0);
  const float largest = largest_magnitude(values);
  if (largest == 0) return;

  std::array<float, 256> unit_values;
  std::ranges::transform(values, unit_values.begin(), [&](float value) { return value / largest; });
  const auto sub_block = [](std::span<const float> all, size_t sub) { return SubBlock(all.subspan(32 * sub, 32)); };
  std::array<Fit, 8> fits;
  Fit most;
  for (size_t sub = 0; sub < 8; ++sub) {
    fits[sub] = search(sub_block(unit_values, sub));
    fits[sub].scale *= largest;
    fits[sub].minimum *= largest;
    most.scale = std::max(most.scale, fits[sub].scale);
    most.minimum = std::max(most.minimum, fits[sub].minimum);
  }

  const uint16_t d = scale_to_f16(most.scale / max_six_bits, largest, T::q4_k);
  const uint16_t dmin = scale_to_f16(most.minimum / max_six_bits, largest, T::q4_k);
  put_u16(block, 0, d);
  put_u16(block, 2, dmin);
  ScalesAndMinimums packed;
  for (size_t sub = 0; sub < 8; ++sub) {
    packed.scales[sub] = six_bits(fits[sub].scale, f16_to_f32(d));
    packed.minimums[sub] = six_bits(fits[sub].minimum, f16_to_f32(dmin));
    const Fit stored{f16_to_f32(d) * packed.scales[sub], f16_to_f32(dmin) * packed.minimums[sub]};
    const Quants quants = nearest_quants(sub_block(values, sub), stored);
    for (size_t j = 0; j < 32; ++j) {
      block[16 + sub / 2 * 32 + j] |= static_cast<uint8_t>(static_cast<int>(quants[j]) << (sub % 2 * 4));
    }
  }
  std::ranges::copy(pack_scales(packed), block.begin() + 4);
}

/// Writes all of `values` as blocks of `type`.
template <TensorType type, void (*write_block)(ValuesOf<type>, BlockOf<type>&)>
void quantize_blocks(std::span<const float> values, std::span<std::byte> blocks) {
  constexpr size_t step = ValuesOf<type>::extent;
  BlockOf<type> block;
  for (size_t i = 0; i < values.size() / step; ++i) {
    const auto part = values.subspan(i * step, step);
    try {
      write_block(ValuesOf<type>(part), block);
    } catch (const Error& error) {
      throw error.within("Quantizing elements " + std::to_string(i * step) + " to " +
                         std::to_string((i + 1) * step - 1));
    }
    std::memcpy(blocks.data() + i * block.size(), block.data(), block.size());
  }
}

using Quantizer = void (*)(std::span<const float> values, std::span<std::byte> blocks);

Quantizer find_quantizer(TensorType type) {
  switch (type) {
    case T::q8_0: return quantize_blocks<T::q8_0, write_q8_0>;
    case T::q4_k: return quantize_blocks<T::q4_k, write_q4_k>;
    default: return nullptr;
  }
}

}  // namespace

bool can_quantize(TensorType type) {
  return find_quantizer(type) != nullptr;
}

void quantize(TensorType type, std::span<const float> values, std::span<std::byte> blocks) {
  const std::string name(to_string(type));
  const Quantizer quantizer = find_quantizer(type);
  if (quantizer == nullptr) throw bad_input("Elements cannot be quantized to " + name + "; supported: Q8_0, Q4_K.");
  const uint64_t needed = tensor_bytes(type, values.size(), "input of the quantization to " + name);
  if (blocks.size() != needed) {
    throw bad_input("Quantizing " + std::to_string(values.size()) + " elements to " + name + " takes " +
                    std::to_string(needed) + " bytes, but room for " + std::to_string(blocks.size()) + " was given.");
  }
  quantizer(values, blocks);
}

}  // namespace canopy
