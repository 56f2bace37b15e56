#include "engine/vulkan/word_layout.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "engine/base/half.h"
#include "engine/format/packed_scales.h"

namespace canopy::vk {

namespace {

constexpr uint32_t kBlockColumns = 32;

constexpr WordFormat kQ5{4, 1, 1, 1, false};
constexpr WordFormat kPairs{4, 0, 2, 1, false};
constexpr WordFormat kQ2K{2, 0, 8, 4, true}, kQ3K{2, 1, 8, 4, true}, kFour{4, 0, 8, 4, true};
constexpr WordFormat kQ5K{4, 1, 8, 4, true}, kQ6K{4, 2, 8, 4, true};

using Quads = std::array<uint32_t, 4>;  // sixteen bytes

Quads sixteen_bytes(const std::byte* from) {
  Quads quads;
  std::memcpy(quads.data(), from, sizeof quads);
  return quads;
}

uint32_t byte_at(const std::byte* from, uint32_t i) {
  return std::to_integer<uint32_t>(from[i]);
}

uint16_t half_at(const std::byte* from) {
  uint16_t value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

uint32_t word_at(const std::byte* from) {
  uint32_t value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

// Codes of four bits of a block: those of its first half from bit `first_shift` of the bytes at `first`, those of its
// second half likewise. Nibble i of word w is element 4 w + i of the first half, then of the second.
void put_nibbles(const std::byte* first, uint32_t first_shift, const std::byte* second, uint32_t second_shift,
                 uint32_t* words) {
  const Quads low = sixteen_bytes(first), high = sixteen_bytes(second);
  for (uint32_t w = 0; w < 4; ++w) {
    words[w] = four_bits_of_bytes(low[w] >> first_shift & 0x0F0F0F0Fu) |
               four_bits_of_bytes(high[w] >> second_shift & 0x0F0F0F0Fu) << 16;
  }
}

// Sixteen bytes with element j in the low half of byte j, element j + 16 in the high half.
void put_nibbles(const std::byte* from, uint32_t* words) {
  put_nibbles(from, 0, from, 4, words);
}

// Two bits from bit `shift` of each of 64 bytes: sixteen of them to a word, the first lowest.
Quads pairs_of_64(const std::byte* from, uint32_t shift) {
  std::array<uint32_t, 16> quads;
  std::memcpy(quads.data(), from, sizeof quads);
  std::array<uint8_t, 16> bytes;
  for (uint32_t i = 0; i < 16; ++i) {
    uint32_t bits = quads[i] >> shift & 0x03030303u;
    bits = (bits | bits >> 6) & 0x000F000Fu;
    bytes[i] = static_cast<uint8_t>(bits | bits >> 12);
  }
  Quads words;
  std::memcpy(words.data(), bytes.data(), sizeof words);
  return words;
}

// Bit `place` of each of 32 bytes, the first lowest. Each of eight bytes' bits meets the power of two in the constant
// that moves it to its place in the highest byte of the product.
uint32_t bits_of_32(const std::byte* from, uint32_t place) {
  uint32_t word = 0;
  for (uint32_t i = 0; i < 4; ++i) {
    uint64_t eight;
    std::memcpy(&eight, from + 8 * i, sizeof eight);
    eight = (eight >> place & 0x0101010101010101u) * 0x0102040810204080u;
    word |= static_cast<uint32_t>(eight >> 56) << (8 * i);
  }
  return word;
}

// The packers: each says what a block of the file holds. The layouts are ggml's.

// Runs of 32 bytes: the low halves are elements 0 ... 31 of 64, the high halves the next 32. `stride` words from one
// block of 32 to the next.
void put_nibbles_256(const std::byte* from, uint32_t stride, uint32_t* words) {
  for (uint32_t run = 0; run < 4; ++run, from += 32, words += 2 * stride) {
    put_nibbles(from, 0, from + 16, 0, words);
    put_nibbles(from, 4, from + 16, 4, words + stride);
  }
}

// Of 128 elements, element 32 j + l is bits 2 j of byte l.
void put_pairs_256(const std::byte* from, uint32_t stride, uint32_t* words) {
  for (uint32_t j = 0; j < 4; ++j, words += stride) {
    const Quads pairs = pairs_of_64(from, 2 * j);
    words[0] = pairs[0];
    words[1] = pairs[1];
    words[4 * stride] = pairs[2];
    words[4 * stride + 1] = pairs[3];
  }
}

// 32 bytes: element e is bit e / 32 of byte e % 32.
void put_bits_256(const std::byte* from, uint32_t stride, uint32_t* words) {
  for (uint32_t b = 0; b < 8; ++b) words[b * stride] = bits_of_32(from, b);
}

// f16 scale [and minimum, Q5_1], 32 upper bits, 16 bytes of nibbles. Q5_0 is centred: its minimum is -16 scales.
template <bool has_minimum>
void pack_q5(const std::byte* from, uint32_t, uint32_t* words) {
  const uint16_t scale = half_at(from);
  const uint16_t minimum = has_minimum ? half_at(from + 2) : minus_power_of_two_times(scale, 4);
  from += has_minimum ? 4 : 2;
  put_nibbles(from + 4, words);
  words[4] = word_at(from);
  words[5] = scale | uint32_t{minimum} << 16;
}

// 16 bytes (scale in the low half, minimum in the high half, per 16 elements), 64 bytes of codes, two f16.
void pack_q2_k(const std::byte* from, uint32_t, uint32_t* words) {
  put_pairs_256(from + 16, kQ2K.block_words(), words);
  words += 8 * kQ2K.block_words();
  std::memcpy(words, from, 16);
  words[4] = word_at(from + 80);
}

// 32 bytes of upper bits (set means the code is not lowered by 4), 64 bytes of codes, 12 bytes of sixteen 6-bit scales
// (low halves in 8 bytes, upper two bits in 4: those of scale i are bits 2 (i / 4) of byte i % 4), f16.
void pack_q3_k(const std::byte* from, uint32_t, uint32_t* words) {
  put_pairs_256(from + 32, kQ3K.block_words(), words);
  put_bits_256(from, kQ3K.block_words(), words + kQ3K.main_words);
  words += 8 * kQ3K.block_words();
  const uint32_t upper = word_at(from + 104);
  for (uint32_t w = 0; w < 4; ++w) {  // four scales each
    const uint32_t low = word_at(from + 96 + w % 2 * 4) >> (w / 2 * 4) & 0x0F0F0F0Fu;
    words[w] = low | (upper >> (2 * w) & 0x03030303u) << 4;
  }
  words[4] = half_at(from + 108);
}

// Eight scales and eight minimums (engine/format/packed_scales.h) as pairs of bytes.
void put_scale_pairs(const std::byte* from, uint32_t* words) {
  std::array<uint8_t, 12> bytes;
  std::memcpy(bytes.data(), from, bytes.size());
  const ScalesAndMinimums pairs = unpack_scales(bytes);
  for (uint32_t w = 0; w < 4; ++w) {
    words[w] = pairs.scales[2 * w] | uint32_t{pairs.minimums[2 * w]} << 8 | uint32_t{pairs.scales[2 * w + 1]} << 16 |
               uint32_t{pairs.minimums[2 * w + 1]} << 24;
  }
}

// Two f16, 12 bytes of scale pairs, 128 bytes of nibbles.
void pack_q4_k(const std::byte* from, uint32_t, uint32_t* words) {
  put_nibbles_256(from + 16, kFour.block_words(), words);
  words += 8 * kFour.block_words();
  put_scale_pairs(from + 4, words);
  words[4] = word_at(from);
}

// As Q4_K, with 32 bytes of upper bits before the nibbles.
void pack_q5_k(const std::byte* from, uint32_t, uint32_t* words) {
  put_nibbles_256(from + 48, kQ5K.block_words(), words);
  put_bits_256(from + 16, kQ5K.block_words(), words + kQ5K.main_words);
  words += 8 * kQ5K.block_words();
  put_scale_pairs(from + 4, words);
  words[4] = word_at(from);
}

// 128 bytes of nibbles (of 128 elements, 0 ... 63 are the low halves of 64 bytes, the others the high halves), 64 bytes
// of upper bits in pairs, 16 signed scales, f16.
void pack_q6_k(const std::byte* from, uint32_t, uint32_t* words) {
  constexpr uint32_t stride = kQ6K.block_words();
  for (uint32_t b = 0; b < 8; ++b) {
    const std::byte* nibbles = from + b / 4 * 64 + b % 2 * 32;
    const uint32_t shift = b % 4 / 2 * 4;
    put_nibbles(nibbles, shift, nibbles + 16, shift, words + b * stride);
  }
  put_pairs_256(from + 128, stride, words + kQ6K.main_words);
  words += 8 * stride;
  std::memcpy(words, from + 192, 16);
  words[4] = half_at(from + 208);
}

// f16, 16 bits of upper scale bits, 4 bytes of their low halves, 128 bytes of nibbles, 16 to 32 elements.
void pack_iq4_xs(const std::byte* from, uint32_t, uint32_t* words) {
  for (uint32_t b = 0; b < 8; ++b) put_nibbles(from + 8 + 16 * b, words + b * kFour.block_words());
  words += 8 * kFour.block_words();
  const uint32_t upper = half_at(from + 2);
  for (uint32_t b = 0; b < 8; ++b) {
    const uint32_t scale = (byte_at(from, 4 + b / 2) >> (b % 2 * 4) & 15) | (upper >> (2 * b) & 3) << 4;
    words[b / 2] = b % 2 == 0 ? scale : words[b / 2] | scale << 16;
  }
  words[4] = half_at(from);
}

// Two blocks of a file, the second of which the last group of a row may lack: a scale (f16; of MXFP4 a byte, an
// exponent), nibbles.
template <uint32_t scale_bytes>
void pack_two(const std::byte* from, uint32_t columns, uint32_t* words) {
  constexpr uint32_t file_bytes = scale_bytes + 16;
  const auto scale = [](const std::byte* at) { return scale_bytes == 2 ? half_at(at) : byte_at(at, 0); };
  put_nibbles(from + scale_bytes, words);
  words[8] = scale(from);
  if (columns == 32) {
    std::fill_n(words + 4, 4, 0u);
    return;
  }
  from += file_bytes;
  put_nibbles(from + scale_bytes, words + 4);
  words[8] |= scale(from) << 16;
}

}  // namespace

const WordFormat* word_format(WeightType type) {
  switch (type) {
    case WeightType::q5_0:
    case WeightType::q5_1: return &kQ5;
    case WeightType::q2_k: return &kQ2K;
    case WeightType::q3_k: return &kQ3K;
    case WeightType::q4_k:
    case WeightType::iq4_xs: return &kFour;
    case WeightType::q5_k: return &kQ5K;
    case WeightType::q6_k: return &kQ6K;
    case WeightType::iq4_nl:
    case WeightType::mxfp4: return &kPairs;
    case WeightType::f32:
    case WeightType::f16:
    case WeightType::bf16:
    case WeightType::q8_0:
    case WeightType::q4_0:
    case WeightType::q4_1: return nullptr;
  }
  return nullptr;
}

uint32_t words_per_row(const WordFormat& format, uint32_t cols) {
  const uint32_t group = format.group_blocks * kBlockColumns;
  return (cols + group - 1) / group * format.group_words();
}

GroupPacker group_packer(WeightType type) {
  switch (type) {
    case WeightType::q5_0: return pack_q5<false>;
    case WeightType::q5_1: return pack_q5<true>;
    case WeightType::q2_k: return pack_q2_k;
    case WeightType::q3_k: return pack_q3_k;
    case WeightType::q4_k: return pack_q4_k;
    case WeightType::q5_k: return pack_q5_k;
    case WeightType::q6_k: return pack_q6_k;
    case WeightType::iq4_xs: return pack_iq4_xs;
    case WeightType::iq4_nl: return pack_two<2>;
    case WeightType::mxfp4: return pack_two<1>;
    default: return nullptr;
  }
}

}  // namespace canopy::vk
