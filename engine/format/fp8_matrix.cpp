#include "engine/format/fp8_matrix.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <memory>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/half.h"
#include "engine/base/printable.h"
#include "engine/format/stored_scales.h"

namespace canopy {
namespace {

/// An E4M3 by its bits: exponents count from 2^-6, and the largest with all ones is no number.
float e4m3_to_f32(uint8_t bits) {
  const int exponent = bits >> 3 & 15, mantissa = bits & 7;
  if (exponent == 15 && mantissa == 7) return NAN;
  const float magnitude = exponent == 0 ? std::ldexp(static_cast<float>(mantissa), -9)
                                        : std::ldexp(static_cast<float>(8 + mantissa), exponent - 10);
  return (bits & 0x80) != 0 ? -magnitude : magnitude;
}

std::array<float, 256> e4m3_table() {
  std::array<float, 256> table{};
  for (size_t i = 0; i < table.size(); ++i) table[i] = e4m3_to_f32(static_cast<uint8_t>(i));
  return table;
}

/// Where the scale of an element is.
struct ScaleGrid {
  uint64_t block_rows = 1, block_cols = 1;
  uint64_t across = 1;  // scales beside each other
};

class Fp8Matrix final : public PackedMatrix {
 public:
  Fp8Matrix(const TensorView& elements, const TensorView& scales, const ScaleGrid& grid)
      : cols_(elements.cols()), elements_(elements.bytes), scales_(scales), grid_(grid) {}

  void make_rows(uint64_t first, uint64_t count, std::span<std::byte> out) const override {
    for (uint64_t row = first; row < first + count;) {
      const uint64_t band = row / grid_.block_rows;
      const uint64_t end = std::min(first + count, (band + 1) * grid_.block_rows);
      for (uint64_t col = 0; col < cols_; col += grid_.block_cols) {
        const std::array<uint16_t, 256> halves = halves_at(scales_[band * grid_.across + col / grid_.block_cols]);
        const uint64_t width = std::min(cols_ - col, grid_.block_cols);
        for (uint64_t r = row; r < end; ++r) put(halves, r, col, width, out.data() + ((r - first) * cols_ + col) * 2);
      }
      row = end;
    }
  }

  std::string_view form() const override { return "FP8"; }

 private:
  /// All weights that elements of a block can stand for.
  static std::array<uint16_t, 256> halves_at(float scale) {
    static const std::array<float, 256> values = e4m3_table();
    std::array<uint16_t, 256> halves;
    for (size_t i = 0; i < halves.size(); ++i) halves[i] = f32_to_f16(values[i] * scale);
    return halves;
  }

  void put(const std::array<uint16_t, 256>& halves, uint64_t row, uint64_t col, uint64_t width, std::byte* out) const {
    const auto* elements = reinterpret_cast<const uint8_t*>(elements_.data()) + row * cols_ + col;
    for (uint64_t c = 0; c < width; ++c) std::memcpy(out + c * 2, &halves[elements[c]], 2);
  }

  uint64_t cols_;
  std::span<const std::byte> elements_;
  StoredScales scales_;
  ScaleGrid grid_;
};

ScaleGrid grid_of(const TensorView& elements, const TensorView& scales, const HfQuantization& quantization) {
  const uint64_t rows = elements.shape[0], cols = elements.shape[1];
  const auto [block_rows, block_cols] = quantization.block;
  if (block_rows != 0 && scales.rank == 2) {
    const uint64_t down = (rows - 1) / block_rows + 1, across = (cols - 1) / block_cols + 1;
    if (scales.shape[0] == down && scales.shape[1] == across) return {block_rows, block_cols, across};
  }
  if (scales.elements() == 1) return {rows, cols, 1};
  const bool is_for_rows = scales.rank >= 1 && scales.rank <= 2 && scales.shape[0] == rows && scales.elements() == rows;
  if (is_for_rows) return {1, cols, 1};
  throw bad_input("The scales " + quoted_name(scales.name) + " are " + scales.shape_text() + " for a matrix of " +
                  elements.shape_text() + "; one scale, one for each row" +
                  (block_rows == 0 ? std::string(" or, if 'quantization_config' says so, one for each block")
                                   : ", or one for each block of " + std::to_string(block_rows) + " rows and " +
                                         std::to_string(block_cols) + " columns") +
                  " are expected.");
}

}  // namespace

TensorView fp8_matrix(const TensorView& elements, const TensorView& scales, const HfQuantization& quantization) {
  if (elements.rank != 2 || elements.elements() == 0) {
    throw bad_input("The tensor " + quoted_name(elements.name) + " of FP8 is " + elements.shape_text() +
                    "; a matrix is expected.");
  }
  if (!StoredScales::can_read(scales.type)) {
    throw bad_input("The scales " + quoted_name(scales.name) + " are stored as " + std::string(to_string(scales.type)) +
                    "; F32, F16, BF16 or F8_E8M0 is expected.");
  }
  TensorView matrix = elements;
  matrix.type = TensorType::f16;
  matrix.packed = std::make_shared<Fp8Matrix>(elements, scales, grid_of(elements, scales, quantization));
  return matrix;
}

}  // namespace canopy
