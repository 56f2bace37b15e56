#include "engine/format/finite.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "engine/base/error.h"
#include "engine/base/printable.h"
#include "engine/format/dequantize.h"
#include "engine/format/packed_matrix.h"

namespace canopy {
namespace {

using T = TensorType;

/// The offsets in a block of the f16 values that multiply or offset its codes.
struct ScalesAt {
  TensorType type;
  uint32_t first;
  uint32_t second;  // the same as `first` where there is one
};

constexpr std::array scales_at = std::to_array<ScalesAt>({
    {T::f16, 0, 0},      {T::q4_0, 0, 0},   {T::q4_1, 0, 2},     {T::q5_0, 0, 0},    {T::q5_1, 0, 2},
    {T::q8_0, 0, 0},     {T::q2_k, 80, 82}, {T::q3_k, 108, 108}, {T::q4_k, 0, 2},    {T::q5_k, 0, 2},
    {T::q6_k, 208, 208}, {T::iq4_nl, 0, 0}, {T::iq4_xs, 0, 0},   {T::tq1_0, 52, 52}, {T::tq2_0, 64, 64},
    {T::iq2_xxs, 0, 0},  {T::iq2_xs, 0, 0}, {T::iq2_s, 0, 0},    {T::iq3_xxs, 0, 0}, {T::iq3_s, 0, 0},
    {T::iq1_s, 0, 0},
});

template <class Word>
Word word_at(std::span<const std::byte> bytes, uint64_t at) {
  Word word = 0;
  std::memcpy(&word, bytes.data() + at, sizeof word);
  return word;
}

/// Infinity and NaN are the floats whose exponent is all ones.
template <class Word>
bool has_full_exponent(Word word, Word exponent) {
  return (word & exponent) == exponent;
}

/// The first of `count` blocks for which the predicate holds. Runs without a branch out of the inner loop: almost no
/// file has such a block.
template <class IsBad>
std::optional<uint64_t> first_block(uint64_t count, IsBad is_bad) {
  constexpr uint64_t run = 4096;
  for (uint64_t begin = 0; begin < count; begin += run) {
    const uint64_t end = std::min(count, begin + run);
    bool any = false;
    for (uint64_t block = begin; block < end; ++block) any |= is_bad(block);
    if (!any) continue;
    for (uint64_t block = begin;; ++block) {
      if (is_bad(block)) return block;
    }
  }
  return std::nullopt;
}

std::optional<uint64_t> first_by_scales(const ScalesAt& at, uint64_t block_bytes, std::span<const std::byte> blocks) {
  constexpr uint16_t exponent = 0x7c00;
  return first_block(blocks.size() / block_bytes, [&](uint64_t block) {
    return has_full_exponent(word_at<uint16_t>(blocks, block * block_bytes + at.first), exponent) ||
           has_full_exponent(word_at<uint16_t>(blocks, block * block_bytes + at.second), exponent);
  });
}

/// Formats that are rare or pack their scales oddly: by their decoded elements.
std::optional<uint64_t> first_by_decoding(TensorType type, std::span<const std::byte> blocks) {
  const TensorTypeInfo& info = tensor_type_info(type);
  std::vector<float> values(info.block_elements);
  for (uint64_t block = 0; block < blocks.size() / info.block_bytes; ++block) {
    dequantize(type, blocks.subspan(block * info.block_bytes, info.block_bytes), values);
    if (!std::ranges::all_of(values, [](float value) { return std::isfinite(value); })) return block;
  }
  return std::nullopt;
}

}  // namespace

std::optional<uint64_t> first_block_not_finite(TensorType type, std::span<const std::byte> blocks) {
  const uint64_t block_bytes = tensor_type_info(type).block_bytes;
  const auto found = std::ranges::find(scales_at, type, &ScalesAt::type);
  if (found != scales_at.end()) return first_by_scales(*found, block_bytes, blocks);
  if (type == T::f32) {
    return first_block(blocks.size() / block_bytes,
                       [&](uint64_t i) { return has_full_exponent(word_at<uint32_t>(blocks, 4 * i), 0x7f800000u); });
  }
  if (type == T::bf16) {
    return first_block(blocks.size() / block_bytes, [&](uint64_t i) {
      return has_full_exponent(word_at<uint16_t>(blocks, 2 * i), uint16_t{0x7f80});
    });
  }
  if (type == T::mxfp4) {
    // 2^126 and more times the largest code, 6, is beyond a float; 255 is NaN by the OCP specification.
    return first_block(blocks.size() / block_bytes,
                       [&](uint64_t i) { return word_at<uint8_t>(blocks, 17 * i) >= 253; });
  }
  return first_by_decoding(type, blocks);
}

void require_finite(const TensorView& tensor, uint64_t first, uint64_t count) {
  if (count == 0) return;
  std::vector<std::byte> scratch;
  require_finite(tensor, first, rows_of(tensor, first, count, scratch));
}

void require_finite(const TensorView& tensor, uint64_t first, std::span<const std::byte> rows) {
  const TensorTypeInfo& info = tensor_type_info(tensor.type);
  const auto bad = first_block_not_finite(tensor.type, rows);
  if (!bad) return;
  throw bad_input("Row " + std::to_string(first + *bad * info.block_elements / tensor.cols()) + " of the tensor " +
                  quoted_name(tensor.shown_name()) + " of type " + std::string(to_string(tensor.type)) + " holds " +
                  (info.block_elements > 1 ? "a block whose scale" : "an element that") +
                  " is infinite or not a number: the file is damaged.");
}

}  // namespace canopy
