#include "engine/cuda_backend/weight_planes.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <string>

#include "engine/base/error.h"
#include "engine/base/parallel.h"
#include "engine/cuda_backend/kernels/params.h"

namespace canopy::cuda {
namespace {

using Bytes = std::span<const std::byte>;

uint32_t at(Bytes bytes, size_t i) {
  return std::to_integer<uint32_t>(bytes[i]);
}

/// A row's units of one plane on the way to their places.
class RowUnits {
 public:
  RowUnits(std::span<std::byte> plane, uint32_t band, uint32_t units, uint32_t row)
      : plane_(plane), first_((uint64_t{band} * units * kBand + row) * 16) {}

  /// Bytes of the row, as if its units followed each other.
  void copy(uint64_t byte, Bytes from) const {
    for (size_t i = 0; i < from.size(); ++i) {
      plane_[first_ + (byte + i) / 16 * kBand * 16 + (byte + i) % 16] = from[i];
    }
  }
  template <size_t N>
  void copy_words(uint64_t word, const std::array<uint32_t, N>& words) const {
    copy(word * 4, std::as_bytes(std::span(words)));
  }

 private:
  std::span<std::byte> plane_;
  uint64_t first_;
};

struct RowPlanes {
  RowUnits codes, scales, highs;
  uint32_t supers = 0;  // of 256 columns in a row, the padding included

  /// The 4 lower bits of 32 codes: of eight, an even column 2i is nibble i of the word, an odd one nibble i + 4.
  void put_nibbles(uint32_t block, const std::array<uint8_t, 32>& of) const {
    std::array<uint32_t, 4> words = {};
    for (uint32_t i = 0; i < 32; ++i) words[i / 8] |= (of[i] & 15u) << (i % 8 / 2 * 4 + i % 2 * 16);
    codes.copy_words(uint64_t{block} * 4, words);
  }
  /// The fifth bit of each.
  void put_fifth_bits(uint32_t block, const std::array<uint8_t, 32>& of) const {
    std::array<uint32_t, 1> word = {};
    for (uint32_t i = 0; i < 32; ++i) word[0] |= (of[i] >> 4 & 1u) << i;
    highs.copy_words(block, word);
  }
  /// The fifth and sixth.
  void put_two_bits(uint32_t block, const std::array<uint8_t, 32>& of) const {
    std::array<uint32_t, 2> words = {};
    for (uint32_t i = 0; i < 32; ++i) words[i / 16] |= (of[i] >> 4 & 3u) << (i % 16 * 2);
    highs.copy_words(uint64_t{block} * 2, words);
  }
};

/// 32 codes of 4 bits: column i in the lower half of byte i, column i + 16 in the upper.
std::array<uint8_t, 32> halves_of(Bytes bytes) {
  std::array<uint8_t, 32> codes = {};
  for (uint32_t i = 0; i < 16; ++i) {
    codes[i] = at(bytes, i) & 15;
    codes[i + 16] = static_cast<uint8_t>(at(bytes, i) >> 4);
  }
  return codes;
}

/// The same with the fifth bits in a word before them.
std::array<uint8_t, 32> fives_of(Bytes word, Bytes bytes) {
  std::array<uint8_t, 32> codes = halves_of(bytes);
  for (uint32_t i = 0; i < 32; ++i) codes[i] = static_cast<uint8_t>(codes[i] | (at(word, i / 8) >> (i % 8) & 1) << 4);
  return codes;
}

void pack_dense(Bytes row, uint32_t, const RowPlanes& to) {
  to.codes.copy(0, row);
}

void pack_q8_0(Bytes from, uint32_t block, const RowPlanes& to) {
  to.scales.copy(uint64_t{block} * 2, from.first(2));
  to.codes.copy(uint64_t{block} * 32, from.subspan(2));
}

void pack_q4_0(Bytes from, uint32_t block, const RowPlanes& to) {
  to.scales.copy(uint64_t{block} * 2, from.first(2));
  to.put_nibbles(block, halves_of(from.subspan(2)));
}

void pack_q4_1(Bytes from, uint32_t block, const RowPlanes& to) {
  to.scales.copy(uint64_t{block} * 4, from.first(4));
  to.put_nibbles(block, halves_of(from.subspan(4)));
}

void pack_q5_0(Bytes from, uint32_t block, const RowPlanes& to) {
  const auto codes = fives_of(from.subspan(2, 4), from.subspan(6));
  to.scales.copy(uint64_t{block} * 2, from.first(2));
  to.put_nibbles(block, codes);
  to.put_fifth_bits(block, codes);
}

void pack_q5_1(Bytes from, uint32_t block, const RowPlanes& to) {
  const auto codes = fives_of(from.subspan(4, 4), from.subspan(8));
  to.scales.copy(uint64_t{block} * 4, from.first(4));
  to.put_nibbles(block, codes);
  to.put_fifth_bits(block, codes);
}

void pack_mxfp4(Bytes from, uint32_t block, const RowPlanes& to) {
  to.scales.copy(block, from.first(1));
  to.put_nibbles(block, halves_of(from.subspan(1)));
}

// Blocks of 256 columns: eight of 32, b = 0 ... 7.

/// Scale and minimum, 12 bytes of factors, then four times 32 bytes: the first 32 columns in the lower halves, the
/// others in the upper.
std::array<uint8_t, 32> k_codes(Bytes bytes, uint32_t b) {
  std::array<uint8_t, 32> codes = {};
  for (uint32_t i = 0; i < 32; ++i) codes[i] = at(bytes, b / 2 * 32 + i) >> (b % 2 * 4) & 15;
  return codes;
}

void pack_q4_k(Bytes from, uint32_t super, const RowPlanes& to) {
  to.scales.copy(uint64_t{super} * 16, from.first(16));
  for (uint32_t b = 0; b < 8; ++b) to.put_nibbles(super * 8 + b, k_codes(from.subspan(16), b));
}

/// Bit b of byte i is the fifth of column i of block b.
void pack_q5_k(Bytes from, uint32_t super, const RowPlanes& to) {
  to.scales.copy(uint64_t{super} * 16, from.first(16));
  for (uint32_t b = 0; b < 8; ++b) {
    auto codes = k_codes(from.subspan(48), b);
    for (uint32_t i = 0; i < 32; ++i) codes[i] = static_cast<uint8_t>(codes[i] | (at(from, 16 + i) >> b & 1) << 4);
    to.put_nibbles(super * 8 + b, codes);
    to.put_fifth_bits(super * 8 + b, codes);
  }
}

/// 128 bytes of lower halves, 64 of two upper bits, 16 factors, the scale. Half n of the 256 columns: blocks 0 and 1 in
/// the lower halves of its 64 bytes, 2 and 3 in the upper; two bits of byte i for each of the four.
void pack_q6_k(Bytes from, uint32_t super, const RowPlanes& to) {
  to.scales.copy(uint64_t{super} * 16, from.subspan(192, 16));
  to.scales.copy(uint64_t{to.supers} * 16 + super * 2, from.subspan(208, 2));
  for (uint32_t b = 0; b < 8; ++b) {
    const uint32_t n = b / 4, j = b % 4;
    std::array<uint8_t, 32> codes = {};
    for (uint32_t i = 0; i < 32; ++i) {
      const uint32_t low = at(from, n * 64 + j % 2 * 32 + i) >> (j / 2 * 4) & 15;
      codes[i] = static_cast<uint8_t>(low | (at(from, 128 + n * 32 + i) >> (j * 2) & 3) << 4);
    }
    to.put_nibbles(super * 8 + b, codes);
    to.put_two_bits(super * 8 + b, codes);
  }
}

/// Two bits of byte i of half n for each of its four blocks.
uint32_t two_bits(Bytes bytes, uint32_t b, uint32_t i) {
  return at(bytes, b / 4 * 32 + i) >> (b % 4 * 2) & 3;
}

/// 16 bytes of factors, 64 of codes, scale and minimum.
void pack_q2_k(Bytes from, uint32_t super, const RowPlanes& to) {
  to.scales.copy(uint64_t{super} * 16, from.first(16));
  to.scales.copy(uint64_t{to.supers} * 16 + super * 4, from.subspan(80, 4));
  for (uint32_t b = 0; b < 8; ++b) {
    std::array<uint8_t, 32> codes = {};
    for (uint32_t i = 0; i < 32; ++i) codes[i] = static_cast<uint8_t>(two_bits(from.subspan(16, 64), b, i));
    to.put_nibbles(super * 8 + b, codes);
  }
}

/// 32 bytes of third bits (bit b of byte i is column i's of block b), 64 of codes, 12 of factors, the scale.
void pack_q3_k(Bytes from, uint32_t super, const RowPlanes& to) {
  to.scales.copy(uint64_t{super} * 16, from.subspan(108, 2));
  to.scales.copy(uint64_t{super} * 16 + 4, from.subspan(96, 12));
  for (uint32_t b = 0; b < 8; ++b) {
    std::array<uint8_t, 32> codes = {};
    for (uint32_t i = 0; i < 32; ++i) {
      codes[i] = static_cast<uint8_t>(two_bits(from.subspan(32, 64), b, i) | (at(from, i) >> b & 1) << 2);
    }
    to.put_nibbles(super * 8 + b, codes);
  }
}

/// The scale, the upper bits of the factors, their lower ones, then 16 bytes of codes for each block.
void pack_iq4_xs(Bytes from, uint32_t super, const RowPlanes& to) {
  to.scales.copy(uint64_t{super} * 8, from.first(8));
  for (uint32_t b = 0; b < 8; ++b) to.put_nibbles(super * 8 + b, halves_of(from.subspan(8 + b * 16, 16)));
}

struct Format {
  WeightType type;
  const char* suffix;
  uint32_t block_units;                      // of codes for 32 columns
  uint32_t super_scale_bytes, behind_bytes;  // of scales for 256 columns: in their own units, and behind all of them
  uint32_t high_bits;                        // of each code
  void (*pack)(Bytes block, uint32_t index, const RowPlanes& to);  // one of the type's blocks; dense: a whole row
};
constexpr Format kFormats[] = {
    {WeightType::f32, "f32", 8, 0, 0, 0, pack_dense},        {WeightType::f16, "f16", 4, 0, 0, 0, pack_dense},
    {WeightType::bf16, "bf16", 4, 0, 0, 0, pack_dense},      {WeightType::q8_0, "q8_0", 2, 16, 0, 0, pack_q8_0},
    {WeightType::q4_0, "q4_0", 1, 16, 0, 0, pack_q4_0},      {WeightType::q4_1, "q4_1", 1, 32, 0, 0, pack_q4_1},
    {WeightType::q5_0, "q5_0", 1, 16, 0, 1, pack_q5_0},      {WeightType::q5_1, "q5_1", 1, 32, 0, 1, pack_q5_1},
    {WeightType::q2_k, "q2_k", 1, 16, 4, 0, pack_q2_k},      {WeightType::q3_k, "q3_k", 1, 16, 0, 0, pack_q3_k},
    {WeightType::q4_k, "q4_k", 1, 16, 0, 0, pack_q4_k},      {WeightType::q5_k, "q5_k", 1, 16, 0, 1, pack_q5_k},
    {WeightType::q6_k, "q6_k", 1, 16, 2, 2, pack_q6_k},      {WeightType::iq4_nl, "iq4_nl", 1, 16, 0, 0, pack_q4_0},
    {WeightType::iq4_xs, "iq4_xs", 1, 8, 0, 0, pack_iq4_xs}, {WeightType::mxfp4, "mxfp4", 1, 8, 0, 0, pack_mxfp4},
};

const Format& format_of(WeightType type) {
  const auto found = std::ranges::find(kFormats, type, &Format::type);
  if (found == std::end(kFormats)) throw bad_input("A weight has no known type.");
  return *found;
}

uint32_t rounded(uint32_t value, uint32_t to) {
  return (value + to - 1) / to * to;
}

void pack_row(Bytes bytes, const Format& format, const RowPlanes& to) {
  const BlockSize block = block_size(format.type);
  const size_t size = block.elements == 1 ? bytes.size() : block.bytes;
  for (uint32_t i = 0; size_t{i} * size < bytes.size(); ++i) format.pack(bytes.subspan(i * size, size), i, to);
}

}  // namespace

const char* kernel_suffix(WeightType type) {
  return format_of(type).suffix;
}

PlaneLayout plane_layout(std::span<const WeightPart> parts, WeightLayout layout) {
  const WeightExtent extent = joined_extent(parts, layout);
  const Format& format = format_of(parts[0].type);
  PlaneLayout planes;
  planes.rows = extent.rows;
  planes.cols = extent.cols;
  planes.stored_rows = rounded(extent.rows, kBand);
  planes.stored_cols = rounded(extent.cols, kStep);
  planes.code_units = planes.stored_cols / 32 * format.block_units;
  const uint32_t supers = rounded(planes.stored_cols, 256) / 256;
  planes.scale_units =
      rounded(supers * format.super_scale_bytes, 16) / 16 + rounded(supers * format.behind_bytes, 16) / 16;
  planes.high_units = rounded(planes.stored_cols / 8 * format.high_bits, 16) / 16;
  return planes;
}

void fill_planes(std::span<const WeightPart> parts, WeightLayout layout, const PlaneLayout& planes, uint32_t first_band,
                 uint32_t bands, const PlaneBytes& to) {
  const Format& format = format_of(parts[0].type);
  for (const std::span<std::byte> plane : {to.codes, to.scales, to.highs}) std::ranges::fill(plane, std::byte{0});
  parallel_for(bands, 1, [&](uint64_t begin, uint64_t end) {
    std::vector<std::byte> scratch;
    for (auto band = static_cast<uint32_t>(begin); band < end; ++band) {
      for (uint32_t r = 0; r < kBand; ++r) {
        const uint32_t row = (first_band + band) * kBand + r;
        if (row >= planes.rows) break;
        const JoinedRow from = joined_row(parts, layout, row);
        const RowPlanes row_planes{
            RowUnits(to.codes, band, planes.code_units, r), RowUnits(to.scales, band, planes.scale_units, r),
            RowUnits(to.highs, band, planes.high_units, r), rounded(planes.stored_cols, 256) / 256};
        pack_row(read_rows(parts[from.part], from.row, 1, scratch), format, row_planes);
      }
    }
  });
}

}  // namespace canopy::cuda
