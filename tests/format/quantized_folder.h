#pragma once
// Matrices as GPTQ, AWQ and FP8 folders store them, packed here from codes by the definition of each format, and the
// weights that they stand for, computed plainly.

#include <array>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "engine/base/numbers.h"
#include "tests/format/safetensors_builder.h"

namespace canopy::test {

/// 4-bit codes with their scales and zeros.
struct FourBit {
  uint64_t rows = 0, cols = 0, group = 0;  // group: columns
  std::vector<uint32_t> codes;             // [rows][cols]
  std::vector<uint32_t> zeros;             // [groups][rows]
  std::vector<float> scales;               // [groups][rows], as stored
  std::vector<uint32_t> group_of;          // [cols]

  uint64_t groups() const { return (cols + group - 1) / group; }
  double weight(uint64_t r, uint64_t c) const {
    const uint64_t at = group_of[c] * rows + r;
    return double{scales[at]} * (static_cast<double>(codes[r * cols + c]) - static_cast<double>(zeros[at]));
  }
};

struct FourBitForm {
  bool symmetric = false;
  bool act_order = false;
  float (*round)(float) = [](float scale) { return f16_to_f32(f32_to_f16(scale)); };  // to the type of the scales
};

inline FourBit random_four_bit(uint64_t rows, uint64_t cols, uint64_t group, uint32_t seed,
                               const FourBitForm& form = {}) {
  std::mt19937 random(seed);
  std::uniform_int_distribution<uint32_t> code(0, 15);
  std::uniform_real_distribution<float> scale(0.002f, 0.03f);
  FourBit matrix{rows, cols, group, {}, {}, {}, {}};
  for (uint64_t i = 0; i < rows * cols; ++i) matrix.codes.push_back(code(random));
  for (uint64_t i = 0; i < matrix.groups() * rows; ++i) {
    matrix.zeros.push_back(form.symmetric ? 8 : code(random));
    matrix.scales.push_back(form.round(scale(random)));
  }
  for (uint64_t c = 0; c < cols; ++c) matrix.group_of.push_back(static_cast<uint32_t>(c / group));
  if (form.act_order) std::shuffle(matrix.group_of.begin(), matrix.group_of.end(), random);
  return matrix;
}

inline std::string words(const std::vector<uint32_t>& values) {
  std::string bytes;
  for (const uint32_t value : values) bytes += le(value);
  return bytes;
}

inline std::string stored_scales(const std::vector<float>& scales, const std::string& dtype) {
  std::string bytes;
  for (const float scale : scales) {
    if (dtype == "F32") bytes += le(scale);
    if (dtype == "F16") bytes += le(f32_to_f16(scale));
    if (dtype == "BF16") bytes += le(f32_to_bf16(scale));
  }
  return bytes;
}

/// The tensors of one matrix under `base`. GPTQ: 8 columns of a row in a word, lowest bits first; its first version
/// subtracts 1 from every zero before they are packed, as one number of 32 bits.
inline void add_gptq(SafetensorsBuilder& b, const std::string& base, const FourBit& m, int version = 1,
                     bool with_g_idx = true, const std::string& dtype = "F16") {
  std::vector<uint32_t> codes(m.cols / 8 * m.rows), zeros(m.groups() * m.rows / 8);
  for (uint64_t r = 0; r < m.rows; ++r) {
    for (uint64_t c = 0; c < m.cols; ++c) codes[c / 8 * m.rows + r] |= m.codes[r * m.cols + c] << (4 * (c % 8));
  }
  for (uint64_t g = 0; g < m.groups(); ++g) {
    for (uint64_t r = 0; r < m.rows; ++r) zeros[(g * m.rows + r) / 8] |= m.zeros[g * m.rows + r] << (4 * (r % 8));
  }
  if (version == 1) {
    for (uint32_t& word : zeros) word -= 0x11111111;
  }
  b.tensor(base + ".qweight", "I32", {m.cols / 8, m.rows}, words(codes));
  b.tensor(base + ".qzeros", "I32", {m.groups(), m.rows / 8}, words(zeros));
  b.tensor(base + ".scales", dtype, {m.groups(), m.rows}, stored_scales(m.scales, dtype));
  if (with_g_idx) b.tensor(base + ".g_idx", "I32", {m.cols}, words(m.group_of));
}

/// AWQ: 8 rows of a column in a word, the even ones in its lower half.
inline void add_awq(SafetensorsBuilder& b, const std::string& base, const FourBit& m,
                    const std::string& dtype = "F16") {
  constexpr std::array<uint64_t, 8> order = {0, 2, 4, 6, 1, 3, 5, 7};
  std::vector<uint32_t> codes(m.cols * m.rows / 8), zeros(m.groups() * m.rows / 8);
  for (uint64_t word = 0; word < m.rows / 8; ++word) {
    for (uint64_t place = 0; place < 8; ++place) {
      const uint64_t r = 8 * word + order[place];
      for (uint64_t c = 0; c < m.cols; ++c) codes[c * m.rows / 8 + word] |= m.codes[r * m.cols + c] << (4 * place);
      for (uint64_t g = 0; g < m.groups(); ++g) zeros[g * m.rows / 8 + word] |= m.zeros[g * m.rows + r] << (4 * place);
    }
  }
  b.tensor(base + ".qweight", "I32", {m.cols, m.rows / 8}, words(codes));
  b.tensor(base + ".qzeros", "I32", {m.groups(), m.rows / 8}, words(zeros));
  b.tensor(base + ".scales", dtype, {m.groups(), m.rows}, stored_scales(m.scales, dtype));
}

/// 8-bit floats with a scale for each block of rows and columns.
struct Fp8 {
  uint64_t rows = 0, cols = 0, block_rows = 0, block_cols = 0;
  std::string elements;       // E4M3 [rows][cols]
  std::vector<float> scales;  // [blocks down][blocks across]

  uint64_t down() const { return (rows + block_rows - 1) / block_rows; }
  uint64_t across() const { return (cols + block_cols - 1) / block_cols; }
  /// By the definition: 1 bit of sign, 4 of exponent around 7, 3 of fraction.
  static double value(uint8_t bits) {
    const int exponent = bits >> 3 & 15;
    const double fraction = (bits & 7) / 8.0;
    const double magnitude =
        exponent == 0 ? fraction * std::pow(2.0, -6) : (1 + fraction) * std::pow(2.0, exponent - 7);
    return (bits & 0x80) != 0 ? -magnitude : magnitude;
  }
  double weight(uint64_t r, uint64_t c) const {
    return value(static_cast<uint8_t>(elements[r * cols + c])) *
           double{scales[r / block_rows * across() + c / block_cols]};
  }
};

inline Fp8 random_fp8(uint64_t rows, uint64_t cols, uint64_t block_rows, uint64_t block_cols, uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_int_distribution<int> byte(0, 255);
  std::uniform_real_distribution<float> scale(1e-5f, 1e-3f);
  Fp8 matrix{rows, cols, block_rows, block_cols, {}, {}};
  for (uint64_t i = 0; i < rows * cols; ++i) {
    int bits = byte(random);
    if ((bits & 0x7F) == 0x7F) bits ^= 1;  // no number
    matrix.elements += static_cast<char>(bits);
  }
  for (uint64_t i = 0; i < matrix.down() * matrix.across(); ++i) {
    matrix.scales.push_back(bf16_to_f32(f32_to_bf16(scale(random))));
  }
  return matrix;
}

}  // namespace canopy::test
