#include "tests/compute/random_data.h"

#include <array>
#include <bit>
#include <cstring>
#include <optional>

#include "engine/base/numbers.h"

namespace canopy::test {
namespace {

template <class T>
void append(std::vector<std::byte>& bytes, T value) {
  const auto raw = std::bit_cast<std::array<std::byte, sizeof(T)>>(value);
  bytes.insert(bytes.end(), raw.begin(), raw.end());
}

/// Offsets of the halves in a quantized block; all its other bytes may have any value (MXFP4 has none, but an
/// exponent).
struct Halves {
  std::optional<uint32_t> scale, minimum;
};

Halves halves_of(WeightType type) {
  switch (type) {
    case WeightType::q8_0:
    case WeightType::q4_0:
    case WeightType::q5_0:
    case WeightType::iq4_nl:
    case WeightType::iq4_xs: return {0, {}};
    case WeightType::q4_1:
    case WeightType::q5_1:
    case WeightType::q4_k:
    case WeightType::q5_k: return {0, 2};
    case WeightType::q2_k: return {80, 82};
    case WeightType::q3_k: return {108, {}};
    case WeightType::q6_k: return {208, {}};
    default: return {};
  }
}

/// About 1 / the largest number that a block's scale is multiplied by.
float unit_of(WeightType type) {
  switch (type) {
    case WeightType::q8_0:
    case WeightType::q3_k:
    case WeightType::iq4_nl: return 0x1p-7f;
    case WeightType::q4_k: return 0x1p-10f;
    case WeightType::q5_k: return 0x1p-11f;
    case WeightType::q6_k:
    case WeightType::iq4_xs: return 0x1p-12f;
    case WeightType::q2_k: return 0x1p-5f;
    default: return 0x1p-3f;
  }
}

/// An exponent of 2^-4 ... 2^3 taken from the number, and 2^0 for the half that is 1.
uint8_t mxfp4_exponent(uint16_t half) {
  return half == f32_to_f16(1.0f) ? 128 : static_cast<uint8_t>(124 + half % 8);
}

void put(std::vector<std::byte>& bytes, size_t at, uint16_t half) {
  std::memcpy(bytes.data() + at, &half, 2);
}

}  // namespace

std::vector<float> Random::values(size_t count) {
  std::vector<float> result(count);
  for (float& v : result) v = value();
  return result;
}

std::vector<float> Random::integers(size_t count, uint32_t bound) {
  std::vector<float> result(count);
  for (float& v : result) v = static_cast<float>(below(2 * bound + 1)) - static_cast<float>(bound);
  return result;
}

// half(is_minimum) returns a scale or minimum, value() an element of a matrix that is not quantized.
template <class Half, class Value>
FileMatrix Random::blocks(WeightType type, uint32_t rows, uint32_t cols, Half half, Value value) {
  FileMatrix matrix{type, rows, cols, {}};
  const size_t count = size_t{rows} * cols / block_size(type).elements;
  for (size_t i = 0; i < count; ++i) {
    switch (type) {
      case WeightType::f32: append(matrix.data, value()); break;
      case WeightType::f16: append(matrix.data, f32_to_f16(value())); break;
      case WeightType::bf16: append(matrix.data, f32_to_bf16(value())); break;
      default: {
        const size_t first = matrix.data.size();
        for (uint32_t q = 0; q < block_size(type).bytes; ++q) append(matrix.data, static_cast<uint8_t>(below(256)));
        const Halves at = halves_of(type);
        if (at.scale) put(matrix.data, first + *at.scale, half(false));
        if (at.minimum) put(matrix.data, first + *at.minimum, half(true));
        if (type == WeightType::mxfp4) matrix.data[first] = static_cast<std::byte>(mxfp4_exponent(half(false)));
      }
    }
  }
  return matrix;
}

FileMatrix Random::matrix(WeightType type, uint32_t rows, uint32_t cols, float scale) {
  const float unit = unit_of(type) * scale;
  const float minimum = (type == WeightType::q4_1 || type == WeightType::q5_1 ? 1.0f : 0x1p-6f) * scale;
  return blocks(
      type, rows, cols, [&](bool is_minimum) { return f32_to_f16(value() * (is_minimum ? minimum : unit)); },
      [&] { return value() * scale; });
}

FileMatrix Random::integer_matrix(WeightType type, uint32_t rows, uint32_t cols) {
  const bool centred = type == WeightType::q4_1 || type == WeightType::q5_1;
  FileMatrix matrix = blocks(
      type, rows, cols, [&](bool is_minimum) { return f32_to_f16(is_minimum && centred ? -8.0f : 1.0f); },
      [&] { return static_cast<float>(below(17)) - 8.0f; });
  if (type != WeightType::q8_0) return matrix;
  // Fold 8-bit quants into -8 ... 7; the first two bytes of each block of 34 are the scale.
  for (size_t i = 0; i < matrix.data.size(); ++i) {
    if (i % 34 >= 2)
      matrix.data[i] = static_cast<std::byte>(static_cast<int8_t>((std::to_integer<int>(matrix.data[i]) & 15) - 8));
  }
  return matrix;
}

FileMatrix Random::subnormal_matrix(WeightType type, uint32_t rows, uint32_t cols) {
  const auto half = [&](bool) { return static_cast<uint16_t>((1 + below(0x3ff)) | (below(2) << 15)); };
  return blocks(type, rows, cols, half, [&] { return f16_to_f32(half(false)); });
}

}  // namespace canopy::test
