#include "tests/compute/random_data.h"

#include <array>
#include <bit>
#include <cstring>

#include "engine/base/half.h"

namespace canopy::test {
namespace {

template <class T>
void append(std::vector<std::byte>& bytes, T value) {
  const auto raw = std::bit_cast<std::array<std::byte, sizeof(T)>>(value);
  bytes.insert(bytes.end(), raw.begin(), raw.end());
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

// half(is_minimum) gives a scale or minimum, value() an element of an unquantised matrix.
template <class Half, class Value>
FileMatrix Random::blocks(WeightType type, uint32_t rows, uint32_t cols, Half half, Value value) {
  FileMatrix matrix{type, rows, cols, {}};
  const size_t count = size_t{rows} * cols / block_size(type).elements;
  for (size_t i = 0; i < count; ++i) {
    switch (type) {
      case WeightType::f32: append(matrix.data, value()); break;
      case WeightType::f16: append(matrix.data, f32_to_f16(value())); break;
      case WeightType::bf16: append(matrix.data, f32_to_bf16(value())); break;
      case WeightType::q8_0:
        append(matrix.data, half(false));
        for (int q = 0; q < 32; ++q) append(matrix.data, static_cast<uint8_t>(below(256)));
        break;
      case WeightType::q4_1:
        append(matrix.data, half(false));
        append(matrix.data, half(true));
        for (int q = 0; q < 16; ++q) append(matrix.data, static_cast<uint8_t>(below(256)));
        break;
    }
  }
  return matrix;
}

FileMatrix Random::matrix(WeightType type, uint32_t rows, uint32_t cols) {
  const float unit = type == WeightType::q8_0 ? 0x1p-7f : 0x1p-3f;
  return blocks(
      type, rows, cols, [&](bool is_minimum) { return f32_to_f16(value() * (is_minimum ? 1.0f : unit)); },
      [&] { return value(); });
}

FileMatrix Random::integer_matrix(WeightType type, uint32_t rows, uint32_t cols) {
  FileMatrix matrix = blocks(
      type, rows, cols, [&](bool is_minimum) { return f32_to_f16(is_minimum ? -8.0f : 1.0f); },
      [&] { return static_cast<float>(below(17)) - 8.0f; });
  if (type != WeightType::q8_0) return matrix;
  // Quants of 8 bits are folded into -8 ... 7; the two bytes in front of each 32 are the scale.
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
