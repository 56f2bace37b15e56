#include "engine/format/four_bit_matrix.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <utility>

#include "engine/base/checked.h"
#include "engine/base/error.h"
#include "engine/base/half.h"
#include "engine/base/printable.h"
#include "engine/format/stored_scales.h"

namespace canopy {
namespace {

using Method = HfQuantization::Method;

constexpr uint64_t codes_in_word = 8;
constexpr uint64_t block = 32;  // columns of a block of Q4_0 and Q4_1
constexpr uint32_t middle = 8;  // the zero of symmetric codes

// The place in a word of AWQ's that has the code of each of 8 rows.
constexpr std::array<uint32_t, codes_in_word> awq_places = {0, 4, 1, 5, 2, 6, 3, 7};

uint32_t word_at(std::span<const std::byte> words, uint64_t i) {
  uint32_t word = 0;
  std::memcpy(&word, words.data() + i * sizeof word, sizeof word);
  return word;
}

struct CodeGrid {
  uint64_t rows = 0;
  uint64_t cols = 0;
  uint64_t group = 0;  // columns
  uint64_t groups = 0;
};

class FourBitMatrix final : public PackedMatrix {
 public:
  FourBitMatrix(std::string name, TensorType type, const CodeGrid& extent, const FourBitTensors& tensors,
                std::vector<uint32_t> group_of, const HfQuantization& quantization)
      : name_(std::move(name)),
        type_(type),
        extent_(extent),
        codes_(tensors.codes->bytes),
        zeros_(tensors.zeros->bytes),
        scales_(*tensors.scales),
        group_of_(std::move(group_of)),
        is_awq_(quantization.method == Method::awq),
        less_one_(quantization.zeros_less_one) {}

  void make_rows(uint64_t first, uint64_t count, std::span<std::byte> out) const override {
    switch (type_) {
      case TensorType::q4_0:
      case TensorType::q4_1: return make_blocks(first, count, out);
      case TensorType::f16: return make_wide<uint16_t>(first, count, out, [](float v) { return f32_to_f16(v); });
      case TensorType::bf16: return make_wide<uint16_t>(first, count, out, [](float v) { return f32_to_bf16(v); });
      default: return make_wide<float>(first, count, out, [](float v) { return v; });
    }
  }

  std::string_view form() const override {
    if (!group_of_.empty()) return "GPTQ with columns in an order of their own (act-order)";
    return is_awq_ ? "AWQ" : "GPTQ";
  }

 private:
  /// The codes of one column.
  void codes_of(uint64_t col, uint64_t first, std::span<uint8_t> codes) const {
    if (!is_awq_) {
      const uint64_t begin = col / codes_in_word * extent_.rows + first;
      const uint32_t shift = 4 * static_cast<uint32_t>(col % codes_in_word);
      for (uint64_t r = 0; r < codes.size(); ++r) codes[r] = word_at(codes_, begin + r) >> shift & 15;
      return;
    }
    const uint64_t begin = col * (extent_.rows / codes_in_word);
    for (uint64_t r = 0; r < codes.size(); ++r) {
      const uint64_t row = first + r;
      codes[r] = word_at(codes_, begin + row / codes_in_word) >> (4 * awq_places[row % codes_in_word]) & 15;
    }
  }

  uint32_t zero_of(uint64_t group, uint64_t row) const {
    uint32_t word = word_at(zeros_, group * (extent_.rows / codes_in_word) + row / codes_in_word);
    if (less_one_) word += 0x11111111;  // as GPTQModel, which writes them with all carries of subtracting it
    const auto place = static_cast<uint32_t>(row % codes_in_word);
    return word >> (4 * (is_awq_ ? awq_places[place] : place)) & 15;
  }

  void make_blocks(uint64_t first, uint64_t count, std::span<std::byte> out) const {
    const TensorTypeInfo& info = tensor_type_info(type_);
    const uint64_t row_size = extent_.cols / block * info.block_bytes;
    std::vector<uint8_t> codes(block * count);
    for (uint64_t begin = 0; begin < extent_.cols; begin += block) {
      for (uint64_t c = 0; c < block; ++c) codes_of(begin + c, first, std::span(codes).subspan(c * count, count));
      const uint64_t group = begin / extent_.group;
      for (uint64_t r = 0; r < count; ++r) {
        std::byte* at = out.data() + r * row_size + begin / block * info.block_bytes;
        at = put_scales(group, first + r, at);
        for (uint64_t c = 0; c < block / 2; ++c) {
          at[c] = static_cast<std::byte>(codes[c * count + r] | codes[(c + block / 2) * count + r] << 4);
        }
      }
    }
  }

  /// Writes what a block has before its codes, and returns where these go.
  std::byte* put_scales(uint64_t group, uint64_t row, std::byte* at) const {
    const uint64_t place = group * extent_.rows + row;
    const uint16_t scale = scales_.bits(place);
    std::memcpy(at, &scale, sizeof scale);
    at += sizeof scale;
    const uint32_t zero = zero_of(group, row);
    if (type_ == TensorType::q4_0) {
      if (zero == middle) return at;
      throw bad_input("The matrix " + quoted_name(name_) + " has a zero of " + std::to_string(zero) + " in row " +
                      std::to_string(row) + ", but its 'quantization_config' says 'sym', by which all are 8.");
    }
    const uint16_t minimum = f32_to_f16(0.0f - scales_[place] * static_cast<float>(zero));
    std::memcpy(at, &minimum, sizeof minimum);
    return at + sizeof minimum;
  }

  template <class Word, class Round>
  void make_wide(uint64_t first, uint64_t count, std::span<std::byte> out, Round round) const {
    std::vector<float> scales(extent_.groups * count), zeros(scales.size());
    for (uint64_t group = 0; group < extent_.groups; ++group) {
      for (uint64_t r = 0; r < count; ++r) {
        scales[group * count + r] = scales_[group * extent_.rows + first + r];
        zeros[group * count + r] = static_cast<float>(zero_of(group, first + r));
      }
    }
    std::vector<uint8_t> codes(count);
    for (uint64_t col = 0; col < extent_.cols; ++col) {
      codes_of(col, first, codes);
      const uint64_t group = group_of_.empty() ? col / extent_.group : group_of_[col];
      for (uint64_t r = 0; r < count; ++r) {
        const uint64_t at = group * count + r;
        const Word value = round(scales[at] * (static_cast<float>(codes[r]) - zeros[at]));
        std::memcpy(out.data() + (r * extent_.cols + col) * sizeof value, &value, sizeof value);
      }
    }
  }

  std::string name_;
  TensorType type_;
  CodeGrid extent_;
  std::span<const std::byte> codes_, zeros_;
  StoredScales scales_;
  std::vector<uint32_t> group_of_;  // of each column; empty where groups are runs of columns
  bool is_awq_, less_one_;
};

[[noreturn]] void refuse_shape(const TensorView& tensor, const std::string& expected) {
  throw bad_input("The tensor " + quoted_name(tensor.name) + " is " + tensor.shape_text() + " of " +
                  std::string(to_string(tensor.type)) + "; " + expected + " is expected.");
}

void require_words(const TensorView& tensor, std::optional<std::array<uint64_t, 2>> shape) {
  const std::string wanted =
      shape ? "[" + std::to_string((*shape)[0]) + ", " + std::to_string((*shape)[1]) + "] of I32" : "a matrix of I32";
  const bool is_as_wanted = tensor.type == TensorType::i32 && tensor.rank == 2 &&
                            (!shape || (tensor.shape[0] == (*shape)[0] && tensor.shape[1] == (*shape)[1]));
  if (!is_as_wanted) refuse_shape(tensor, wanted);
}

CodeGrid grid_of_codes(const TensorView& codes, const HfQuantization& quantization) {
  require_words(codes, std::nullopt);
  const bool is_awq = quantization.method == Method::awq;
  CodeGrid extent;
  extent.cols = is_awq ? codes.shape[0] : checked_mul(codes.shape[0], codes_in_word, "columns of " + codes.name);
  extent.rows = is_awq ? checked_mul(codes.shape[1], codes_in_word, "rows of " + codes.name) : codes.shape[1];
  if (extent.cols == 0 || extent.rows == 0 || extent.rows % codes_in_word != 0) {
    refuse_shape(codes, "a number of rows that is a multiple of 8");
  }
  checked_mul(extent.rows, extent.cols, "elements of " + codes.name);
  extent.group = quantization.group_size == 0 ? extent.cols : quantization.group_size;
  extent.groups = (extent.cols - 1) / extent.group + 1;
  return extent;
}

/// The group of each column; empty where groups are runs of columns, as without g_idx.
std::vector<uint32_t> read_groups(const TensorView* columns, const CodeGrid& extent) {
  if (columns == nullptr) return {};
  if (columns->type != TensorType::i32 || columns->rank != 1 || columns->shape[0] != extent.cols) {
    refuse_shape(*columns, "[" + std::to_string(extent.cols) + "] of I32");
  }
  std::vector<uint32_t> groups(extent.cols);
  bool are_runs = true;
  for (uint64_t col = 0; col < extent.cols; ++col) {
    groups[col] = word_at(columns->bytes, col);
    if (groups[col] >= extent.groups) {
      throw bad_input("The tensor " + quoted_name(columns->name) + " puts column " + std::to_string(col) +
                      " into group " + std::to_string(static_cast<int32_t>(groups[col])) + "; there are " +
                      std::to_string(extent.groups) + " groups of " + std::to_string(extent.group) + " columns.");
    }
    are_runs = are_runs && groups[col] == col / extent.group;
  }
  if (are_runs) groups.clear();
  return groups;
}

TensorType type_of_rows(const CodeGrid& extent, TensorType scales, bool has_own_order, bool symmetric) {
  const bool blocks_have_one_group =
      !has_own_order && extent.cols % block == 0 && (extent.group % block == 0 || extent.groups == 1);
  if (!blocks_have_one_group || scales != TensorType::f16) return scales;
  return symmetric ? TensorType::q4_0 : TensorType::q4_1;
}

}  // namespace

TensorView four_bit_matrix(std::string name, const FourBitTensors& tensors, const HfQuantization& quantization) {
  const CodeGrid extent = grid_of_codes(*tensors.codes, quantization);
  require_words(*tensors.zeros, std::array{extent.groups, extent.rows / codes_in_word});
  const TensorView& scales = *tensors.scales;
  const bool is_float =
      scales.type == TensorType::f16 || scales.type == TensorType::bf16 || scales.type == TensorType::f32;
  if (!is_float || scales.rank != 2 || scales.shape[0] != extent.groups || scales.shape[1] != extent.rows) {
    refuse_shape(scales, "[" + std::to_string(extent.groups) + ", " + std::to_string(extent.rows) +
                             "] of F16, BF16 or F32, one scale for " + std::to_string(extent.group) +
                             " columns of a row,");
  }
  std::vector<uint32_t> group_of = read_groups(tensors.columns, extent);
  TensorView matrix;
  matrix.name = std::move(name);
  matrix.stored_as = tensors.codes->name;
  matrix.type = type_of_rows(extent, scales.type, !group_of.empty(), quantization.symmetric);
  matrix.rank = 2;
  matrix.shape = {extent.rows, extent.cols};
  matrix.bytes = tensors.codes->bytes;
  matrix.packed = std::make_shared<FourBitMatrix>(matrix.stored_as, matrix.type, extent, tensors, std::move(group_of),
                                                  quantization);
  return matrix;
}

}  // namespace canopy
