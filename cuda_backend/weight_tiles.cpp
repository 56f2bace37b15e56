#include "cuda_backend/weight_tiles.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <iterator>
#include <string>

#include "engine/base/error.h"
#include "engine/base/numbers.h"

namespace canopy::cuda {
namespace {

using Bytes = std::span<const std::byte>;

uint32_t at(Bytes bytes, size_t i) {
  return std::to_integer<uint32_t>(bytes[i]);
}

// Scales in tiles are less than this. A unit that was chosen by some of a weight's leaves room for others that are
// larger, so that the largest may be kLeastScale.
constexpr int kMostExponent = 15;
constexpr float kMostScale = 1 << kMostExponent, kRoom = 8, kLeastScale = kMostScale / 2 / kRoom;

/// A row on the way to its places in the tiles of its 16 rows.
class RowTiles {
 public:
  /// `largest` becomes that of the scales in tiles, if it is less.
  RowTiles(std::span<std::byte> group, const TileLayout& tiles, uint32_t row, float& largest)
      : group_(group), shape_(tiles.shape), row_(row), factor_(1 / (tiles.unit * kCodeUnit)), largest_(largest) {}

  /// A scale or minimum, as tiles have it, times `part`. `most`: the largest number that a scale is multiplied by.
  std::array<std::byte, 2> scaled(Bytes half, float most, float part = 1) const {
    uint16_t bits = 0;
    std::memcpy(&bits, half.data(), sizeof(bits));
    const float value = f16_to_f32(bits) * (factor_ * part);
    note(std::abs(value) * most);
    bits = f32_to_f16(value);
    return {static_cast<std::byte>(bits & 255), static_cast<std::byte>(bits >> 8)};
  }
  /// e of a scale 2^(e - 128).
  std::byte scaled_exponent(uint32_t e) const {
    note(std::ldexp(factor_, static_cast<int>(e) - 128));
    return static_cast<std::byte>(std::clamp(static_cast<int>(e) + std::ilogb(factor_), 0, 255));
  }

  const TileShape& shape() const { return shape_; }

  /// Codes of columns 8 * octet ... + 7 of block `block`.
  void put_octet(uint32_t block, uint32_t octet, Bytes codes) const {
    put(step_of(block) + (octet * kTileRows * 4 + row_ * 4 + block % 4) * shape_.code_bytes, codes);
  }
  void put_word(uint64_t at, uint32_t word) const { put(at, std::as_bytes(std::span(&word, 1))); }

  /// The lower 4 bits of 32 codes, where `place` says.
  void put_nibbles(uint32_t block, const std::array<uint8_t, 32>& of, uint32_t (*place)(uint32_t) = nibble_at) const {
    for (uint32_t octet = 0; octet < 4; ++octet) {
      uint32_t word = 0;
      for (uint32_t i = 0; i < 8; ++i) word |= (of[octet * 8 + i] & 15u) << place(i);
      put_octet(block, octet, std::as_bytes(std::span(&word, 1)));
    }
  }
  /// Two bits of each from bit `from` on.
  void put_twos(uint32_t block, const std::array<uint8_t, 32>& of, uint32_t from) const {
    uint32_t words[2] = {};
    for (uint32_t i = 0; i < 32; ++i) words[i / 16] |= (of[i] >> from & 3u) << two_at(i);
    const uint64_t at = step_of(block) + shape_.twos_at() + row_ * 16 + block % 4 * 4;
    put_word(at, words[0]);
    put_word(at + 256, words[1]);
  }
  /// Bit `from` of each.
  void put_ones(uint32_t block, const std::array<uint8_t, 32>& of, uint32_t from) const {
    uint32_t word = 0;
    for (uint32_t i = 0; i < 32; ++i) word |= (of[i] >> from & 1u) << one_at(i);
    put_word(step_of(block) + shape_.ones_at() + row_ * 16 + block % 4 * 4, word);
  }
  /// What a block has in its step's scales.
  void put_step_scale(uint32_t block, Bytes scale) const {
    put(step_of(block) + shape_.step_scales_at() + row_ * shape_.step_scale_bytes + block % 4 * scale.size(), scale);
  }
  /// What 256 columns have.
  void put_scale(uint32_t super, Bytes scale) const { put(super_of(super) + row_ * shape_.scale_bytes, scale); }
  void put_behind(uint32_t super, Bytes scale) const {
    put(super_of(super) + kTileRows * shape_.scale_bytes + row_ * shape_.behind_bytes, scale);
  }

 private:
  void note(float scale) const {
    if (std::isfinite(scale)) largest_ = std::max(largest_, scale);
  }
  uint64_t step_of(uint32_t block) const {
    return uint64_t{block / 8} * shape_.bytes() + block % 8 / 4 * shape_.step_bytes();
  }
  uint64_t super_of(uint32_t super) const { return uint64_t{super} * shape_.bytes() + 2 * shape_.step_bytes(); }
  void put(uint64_t at, Bytes bytes) const { std::ranges::copy(bytes, group_.begin() + static_cast<ptrdiff_t>(at)); }

  std::span<std::byte> group_;
  const TileShape& shape_;
  uint32_t row_;
  float factor_;
  float& largest_;
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

void pack_dense(Bytes row, uint32_t, const RowTiles& to) {
  const size_t octet = to.shape().code_bytes;
  for (size_t i = 0; i * octet < row.size(); ++i) {
    const auto column = static_cast<uint32_t>(i * 8);
    to.put_octet(column / 32, column % 32 / 8, row.subspan(i * octet, std::min(octet, row.size() - i * octet)));
  }
}

/// Codes become bytes of code + 128.
void pack_q8_0(Bytes from, uint32_t block, const RowTiles& to) {
  to.put_step_scale(block, to.scaled(from, 1));
  for (uint32_t octet = 0; octet < 4; ++octet) {
    std::array<std::byte, 8> codes;
    std::ranges::transform(from.subspan(2 + octet * 8, 8), codes.begin(),
                           [](std::byte b) { return b ^ std::byte{128}; });
    to.put_octet(block, octet, codes);
  }
}

void pack_q4_0(Bytes from, uint32_t block, const RowTiles& to) {
  to.put_step_scale(block, to.scaled(from, 1));
  to.put_nibbles(block, halves_of(from.subspan(2)));
}

void pack_iq4_nl(Bytes from, uint32_t block, const RowTiles& to) {
  to.put_step_scale(block, to.scaled(from, 1));
  to.put_nibbles(block, halves_of(from.subspan(2)), index_at);
}

void put_scale_and_minimum(Bytes from, uint32_t block, const RowTiles& to) {
  const auto scale = to.scaled(from, 1), minimum = to.scaled(from.subspan(2), 1, 1.0f / kMinimumPart);
  to.put_step_scale(block, std::array{scale[0], scale[1], minimum[0], minimum[1]});
}

void pack_q4_1(Bytes from, uint32_t block, const RowTiles& to) {
  put_scale_and_minimum(from, block, to);
  to.put_nibbles(block, halves_of(from.subspan(4)));
}

void pack_q5_0(Bytes from, uint32_t block, const RowTiles& to) {
  const auto codes = fives_of(from.subspan(2, 4), from.subspan(6));
  to.put_step_scale(block, to.scaled(from, 1));
  to.put_nibbles(block, codes);
  to.put_ones(block, codes, 4);
}

void pack_q5_1(Bytes from, uint32_t block, const RowTiles& to) {
  const auto codes = fives_of(from.subspan(4, 4), from.subspan(8));
  put_scale_and_minimum(from, block, to);
  to.put_nibbles(block, codes);
  to.put_ones(block, codes, 4);
}

void pack_mxfp4(Bytes from, uint32_t block, const RowTiles& to) {
  to.put_step_scale(block, std::array{to.scaled_exponent(at(from, 0))});
  to.put_nibbles(block, halves_of(from.subspan(1)), index_at);
}

// Blocks of 256 columns: eight of 32, b = 0 ... 7.

/// Scale and minimum, 12 bytes of factors, then four times 32 bytes: the first 32 columns in the lower halves, the
/// others in the upper.
std::array<uint8_t, 32> k_codes(Bytes bytes, uint32_t b) {
  std::array<uint8_t, 32> codes = {};
  for (uint32_t i = 0; i < 32; ++i) codes[i] = at(bytes, b / 2 * 32 + i) >> (b % 2 * 4) & 15;
  return codes;
}

/// Two halves, the second with the other sign: a minimum is subtracted. Both are multiplied by factors up to `most`;
/// the minimum's is a subnormal half, so it has room by itself.
std::array<std::byte, 4> with_negative_minimum(Bytes halves, float most, const RowTiles& to) {
  const auto scale = to.scaled(halves, most), minimum = to.scaled(halves.subspan(2), 1);
  return {scale[0], scale[1], minimum[0], minimum[1] ^ std::byte{128}};
}

void pack_k_scales(Bytes from, uint32_t super, const RowTiles& to) {
  std::array<std::byte, 16> scales;
  std::ranges::copy(with_negative_minimum(from, 63, to), scales.begin());
  std::ranges::copy(from.subspan(4, 12), scales.begin() + 4);
  to.put_scale(super, scales);
}

void pack_q4_k(Bytes from, uint32_t super, const RowTiles& to) {
  pack_k_scales(from, super, to);
  for (uint32_t b = 0; b < 8; ++b) to.put_nibbles(super * 8 + b, k_codes(from.subspan(16), b));
}

/// Bit b of byte i is the fifth of column i of block b.
void pack_q5_k(Bytes from, uint32_t super, const RowTiles& to) {
  pack_k_scales(from, super, to);
  for (uint32_t b = 0; b < 8; ++b) {
    auto codes = k_codes(from.subspan(48), b);
    for (uint32_t i = 0; i < 32; ++i) codes[i] = static_cast<uint8_t>(codes[i] | (at(from, 16 + i) >> b & 1) << 4);
    to.put_nibbles(super * 8 + b, codes);
    to.put_ones(super * 8 + b, codes, 4);
  }
}

/// 128 bytes of lower halves, 64 of two upper bits, 16 signed factors, the scale. Half n of the 256 columns: blocks 0
/// and 1 in the lower halves of its 64 bytes, 2 and 3 in the upper; two bits of byte i for each of the four. Factors
/// become bytes of factor + 128.
void pack_q6_k(Bytes from, uint32_t super, const RowTiles& to) {
  std::array<std::byte, 16> factors;
  std::ranges::transform(from.subspan(192, 16), factors.begin(), [](std::byte b) { return b ^ std::byte{128}; });
  to.put_scale(super, factors);
  to.put_behind(super, to.scaled(from.subspan(208), 128));
  for (uint32_t b = 0; b < 8; ++b) {
    const uint32_t n = b / 4, j = b % 4;
    std::array<uint8_t, 32> codes = {};
    for (uint32_t i = 0; i < 32; ++i) {
      const uint32_t low = at(from, n * 64 + j % 2 * 32 + i) >> (j / 2 * 4) & 15;
      codes[i] = static_cast<uint8_t>(low | (at(from, 128 + n * 32 + i) >> (j * 2) & 3) << 4);
    }
    to.put_nibbles(super * 8 + b, codes);
    to.put_twos(super * 8 + b, codes, 4);
  }
}

/// Two bits of byte i of half n for each of its four blocks.
uint32_t two_bits(Bytes bytes, uint32_t b, uint32_t i) {
  return at(bytes, b / 4 * 32 + i) >> (b % 4 * 2) & 3;
}

/// 16 bytes of factors, 64 of codes, scale and minimum.
void pack_q2_k(Bytes from, uint32_t super, const RowTiles& to) {
  to.put_scale(super, from.first(16));
  to.put_behind(super, with_negative_minimum(from.subspan(80), 15, to));
  for (uint32_t b = 0; b < 8; ++b) {
    std::array<uint8_t, 32> codes = {};
    for (uint32_t i = 0; i < 32; ++i) codes[i] = static_cast<uint8_t>(two_bits(from.subspan(16, 64), b, i));
    to.put_twos(super * 8 + b, codes, 0);
  }
}

/// 32 bytes of third bits (bit b of byte i is column i's of block b), 64 of codes, 12 of factors of 6 bits, the scale.
/// Factors become bytes of factor + 128 - 32.
void pack_q3_k(Bytes from, uint32_t super, const RowTiles& to) {
  std::array<std::byte, 16> factors;
  for (uint32_t i = 0; i < 16; ++i) {
    const uint32_t low = at(from, 96 + i % 8) >> (i / 8 * 4) & 15, high = at(from, 104 + i % 4) >> (i / 4 * 2) & 3;
    factors[i] = static_cast<std::byte>((low | high << 4) + 96);
  }
  to.put_scale(super, factors);
  to.put_behind(super, to.scaled(from.subspan(108), 32));
  for (uint32_t b = 0; b < 8; ++b) {
    std::array<uint8_t, 32> codes = {};
    for (uint32_t i = 0; i < 32; ++i) {
      codes[i] = static_cast<uint8_t>(two_bits(from.subspan(32, 64), b, i) | (at(from, i) >> b & 1) << 2);
    }
    to.put_twos(super * 8 + b, codes, 0);
    to.put_ones(super * 8 + b, codes, 2);
  }
}

/// The scale, the upper bits of eight factors of 6 bits, their lower ones, then 16 bytes of codes for each block.
/// Factors become bytes of factor + 128 - 32.
void pack_iq4_xs(Bytes from, uint32_t super, const RowTiles& to) {
  std::array<std::byte, 8> factors;
  for (uint32_t b = 0; b < 8; ++b) {
    const uint32_t low = at(from, 4 + b / 2) >> (b % 2 * 4) & 15, high = at(from, 2 + b / 4) >> (b % 4 * 2) & 3;
    factors[b] = static_cast<std::byte>((low | high << 4) + 96);
  }
  to.put_scale(super, factors);
  to.put_behind(super, to.scaled(from, 32));
  for (uint32_t b = 0; b < 8; ++b) to.put_nibbles(super * 8 + b, halves_of(from.subspan(8 + b * 16, 16)), index_at);
}

struct Format {
  WeightType type;
  const char* suffix;
  TileShape shape;
  void (*pack)(Bytes block, uint32_t index, const RowTiles& to);  // one of the type's blocks; dense: a whole row
};
constexpr Format kFormats[] = {
    {WeightType::f32, "f32", kTileF32, pack_dense},          {WeightType::f16, "f16", kTileF16, pack_dense},
    {WeightType::bf16, "bf16", kTileF16, pack_dense},        {WeightType::q8_0, "q8_0", kTileQ80, pack_q8_0},
    {WeightType::q4_0, "q4_0", kTileQ40, pack_q4_0},         {WeightType::q4_1, "q4_1", kTileQ41, pack_q4_1},
    {WeightType::q5_0, "q5_0", kTileQ50, pack_q5_0},         {WeightType::q5_1, "q5_1", kTileQ51, pack_q5_1},
    {WeightType::q2_k, "q2_k", kTileQ2K, pack_q2_k},         {WeightType::q3_k, "q3_k", kTileQ3K, pack_q3_k},
    {WeightType::q4_k, "q4_k", kTileQ4K, pack_q4_k},         {WeightType::q5_k, "q5_k", kTileQ5K, pack_q5_k},
    {WeightType::q6_k, "q6_k", kTileQ6K, pack_q6_k},         {WeightType::iq4_nl, "iq4_nl", kTileQ40, pack_iq4_nl},
    {WeightType::iq4_xs, "iq4_xs", kTileIq4Xs, pack_iq4_xs}, {WeightType::mxfp4, "mxfp4", kTileMxfp4, pack_mxfp4},
};

const Format& format_of(WeightType type) {
  const auto found = std::ranges::find(kFormats, type, &Format::type);
  if (found == std::end(kFormats)) throw bad_input("A weight has no known type.");
  return *found;
}

void pack_row(Bytes bytes, const Format& format, const RowTiles& to) {
  const BlockSize block = block_size(format.type);
  const size_t size = block.elements == 1 ? bytes.size() : block.bytes;
  for (uint32_t i = 0; size_t{i} * size < bytes.size(); ++i) format.pack(bytes.subspan(i * size, size), i, to);
}

}  // namespace

const char* kernel_suffix(WeightType type) {
  return format_of(type).suffix;
}

const TileShape& tile_shape(WeightType type) {
  return format_of(type).shape;
}

TileLayout tile_layout(std::span<const WeightPart> parts, WeightLayout layout) {
  const WeightExtent extent = joined_extent(parts, layout);
  return {extent.rows, extent.cols, tile_shape(parts[0].type)};
}

float fill_group(std::span<const WeightPart> parts, WeightLayout layout, const TileLayout& tiles, uint32_t group,
                 std::span<std::byte> to, std::vector<std::byte>& scratch) {
  const Format& format = format_of(parts[0].type);
  float largest = 0;
  std::ranges::fill(to, std::byte{0});
  for (uint32_t r = 0; r < kTileRows && group * kTileRows + r < tiles.rows; ++r) {
    const JoinedRow from = joined_row(parts, layout, group * kTileRows + r);
    pack_row(read_rows(parts[from.part], from.row, 1, scratch), format, {to, tiles, r, largest});
  }
  return largest;
}

bool fits_unit(float largest) {
  return largest == 0 || (largest >= kLeastScale && largest < kMostScale);
}

float unit_for(float unit, float largest) {
  if (largest == 0) return unit;
  int exponent = 0, of_unit = 0;
  std::frexp(largest, &exponent);  // of the power of two above it
  std::frexp(unit, &of_unit);      // one more than its own
  // Within what f32 has room for beside sums; only exponents of MXFP4 go so far.
  return std::ldexp(1.0f, std::clamp(of_unit - 1 + exponent - kMostExponent, -64, 64));
}

float likely_unit(std::span<const WeightPart> parts, WeightLayout layout, const TileLayout& tiles) {
  constexpr uint32_t samples = 4;
  std::vector<std::byte> group(tiles.group_bytes()), scratch;
  float largest = 0;
  for (uint32_t i = 0; i < std::min(samples, tiles.groups()); ++i) {
    const uint64_t which = uint64_t{i} * tiles.groups() / samples;
    largest = std::max(largest, fill_group(parts, layout, tiles, static_cast<uint32_t>(which), group, scratch));
  }
  return unit_for(tiles.unit, largest) * (largest > 0 && tiles.groups() > samples ? kRoom : 1);
}

}  // namespace canopy::cuda
