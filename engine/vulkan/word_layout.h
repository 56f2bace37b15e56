#pragma once
// Types whose weights lie in device memory as words (shaders/words.glsl reads them): per block of 32 columns, words of
// codes and words of the codes' upper bits; per group of blocks, 16 bits of scale for each (Q5: a whole word) and, for
// the K-quants and IQ4_XS, one word whose halves are factors of all. Nothing is widened: a row takes at most a tenth
// more than in the file.

#include <cstddef>
#include <cstdint>

#include "engine/base/half.h"
#include "engine/compute/types.h"

namespace canopy::vk {

struct WordFormat {
  uint32_t main_words;    // of a block: 4 bits a code, or 2 (2 words)
  uint32_t high_words;    // 1 bit a code each
  uint32_t group_blocks;  // blocks that share the words behind them
  uint32_t scale_words;   // of a group
  bool has_factor;

  constexpr uint32_t block_words() const { return main_words + high_words; }
  constexpr uint32_t group_words() const { return group_blocks * block_words() + scale_words + (has_factor ? 1 : 0); }
};

/// The format of a type, or nullptr for those kept otherwise (weight_layout.h).
const WordFormat* word_format(WeightType type);

/// Words of one row of `cols` columns; whole groups.
uint32_t words_per_row(const WordFormat& format, uint32_t cols);

/// Makes the words of one group, group_words() of them, of a row's blocks in the file. Of the group's columns the first
/// `columns` exist, a multiple of 32; the words of the others become 0.
using GroupPacker = void (*)(const std::byte* blocks, uint32_t columns, uint32_t* words);

/// Of a type that has a word_format().
GroupPacker group_packer(WeightType type);

/// -2^power times a half, rounded as f32_to_f16 does.
constexpr uint16_t minus_power_of_two_times(uint16_t half, uint32_t power) {
  const uint32_t exponent = half >> 10 & 31;
  if (exponent == 0 || exponent + power > 30) {  // subnormal, or infinite by then
    return f32_to_f16(-static_cast<float>(1u << power) * f16_to_f32(half));
  }
  return static_cast<uint16_t>((half + (power << 10)) ^ 0x8000u);
}

/// Four bytes below 16 as 16 bits, the first byte lowest.
constexpr uint32_t four_bits_of_bytes(uint32_t bytes) {
  bytes = (bytes | bytes >> 4) & 0x00FF00FFu;
  return (bytes | bytes >> 8) & 0xFFFFu;
}

}  // namespace canopy::vk
