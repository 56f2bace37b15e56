#include "engine/vulkan/device_objects.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <string>

#include "engine/base/error.h"
#include "engine/base/machine.h"
#include "engine/format/dequantize.h"

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

/// Four bytes below 16 as 16 bits, the first byte lowest.
constexpr uint32_t four_bits_of_bytes(uint32_t bytes) {
  bytes = (bytes | bytes >> 4) & 0x00FF00FFu;
  return (bytes | bytes >> 8) & 0xFFFFu;
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

// Eight scales and eight minimums (engine/format/dequantize.h) as pairs of bytes.
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

/// Makes the words of one group, group_words() of them, of a row's blocks in the file. Of the group's columns the first
/// `columns` exist, a multiple of 32; the words of the others become 0.
using GroupPacker = void (*)(const std::byte* blocks, uint32_t columns, uint32_t* words);

/// Of a type that has a word_format().
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

namespace {

uint32_t round_up(uint32_t value, uint32_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

bool has_scales(WeightType type) {
  return type == WeightType::q8_0 || type == WeightType::q4_1 || type == WeightType::q4_0;
}

uint32_t blocks_of(uint32_t cols) {
  return (cols + kBlockColumns - 1) / kBlockColumns;
}

uint32_t units_of(WeightType type, uint32_t cols) {
  return blocks_of(cols) * (kBlockColumns / columns_per_unit(type));
}

}  // namespace

uint32_t columns_per_unit(WeightType type) {
  switch (type) {
    case WeightType::f32: return 4;
    case WeightType::f16:
    case WeightType::bf16: return 8;
    case WeightType::q8_0: return 16;
    case WeightType::q4_0:
    case WeightType::q4_1: return 32;
    default: return 0;
  }
}

std::vector<WeightShardLayout> shard_rows(WeightType type, WeightExtent extent, uint64_t max_bytes) {
  const WordFormat* words = word_format(type);
  const uint64_t unit_row =
      words != nullptr ? uint64_t{words_per_row(*words, extent.cols)} * 4 : uint64_t{units_of(type, extent.cols)} * 16;
  const uint64_t scale_row = has_scales(type) ? uint64_t{blocks_of(extent.cols)} * 4 : 0;
  const uint64_t fitting = max_bytes / std::max(unit_row, scale_row) / kBandRows * kBandRows;
  if (fitting == 0) {
    throw out_of_memory(std::to_string(kBandRows) + " rows of a weight with " + std::to_string(extent.cols) +
                        " columns take " + std::to_string(unit_row * kBandRows) + " bytes; the device allows " +
                        std::to_string(max_bytes) + " in one buffer.");
  }
  std::vector<WeightShardLayout> shards;
  for (uint32_t first = 0; first < extent.rows;) {
    WeightShardLayout shard;
    shard.first_row = first;
    shard.rows = static_cast<uint32_t>(std::min<uint64_t>(fitting, extent.rows - first));
    shard.stored_rows = round_up(shard.rows, kBandRows);
    shard.unit_bytes = unit_row * shard.stored_rows;
    shard.scale_bytes = scale_row * shard.stored_rows;
    shards.push_back(shard);
    first += shard.rows;
  }
  return shards;
}

namespace {

constexpr uint64_t kLeastWords = 1 << 16;  // least work for a thread: starting it costs as much as fewer words
constexpr uint32_t kUnitBytes = 16;

// The rows of one band in the file, `bytes` each, and where their units and scales go. The packers below write both
// forward, word after word, and zeros for the rows that a last band lacks.
struct Band {
  std::array<const std::byte*, kBandRows> rows = {};
  uint32_t count = 0;  // rows that exist
  uint32_t cols = 0;
  uint64_t bytes = 0;
  std::span<uint32_t> units, scales;
};

void put(std::span<uint32_t> units, uint64_t index, const Quads& unit) {
  std::memcpy(&units[index * unit.size()], unit.data(), kUnitBytes);
}

// f32, f16, bf16: the file's elements in order.
void pack_plain(const Band& band) {
  const uint64_t units = band.units.size() / kBandRows / 4;
  const uint64_t whole = band.bytes / kUnitBytes;  // units that are full in the file
  for (uint64_t u = 0; u < units; ++u) {
    const uint64_t begin = u * kUnitBytes;
    const uint64_t filled = u < whole ? kUnitBytes : std::max(begin, band.bytes) - begin;
    for (uint32_t r = 0; r < kBandRows; ++r) {
      Quads unit = {};
      if (r < band.count && filled == kUnitBytes) {
        std::memcpy(&unit, band.rows[r] + begin, kUnitBytes);
      } else if (r < band.count) {
        std::memcpy(&unit, band.rows[r] + begin, filled);
      }
      put(band.units, u * kBandRows + r, unit);
    }
  }
}

uint16_t half_of(const std::byte* from) {
  uint16_t half;
  std::memcpy(&half, from, sizeof half);
  return half;
}

// f16 scale, 32 signed bytes: two units.
void pack_q8_0(const Band& band) {
  constexpr uint32_t block_bytes = 34;
  const uint64_t blocks = band.bytes / block_bytes;
  for (uint64_t b = 0; b < blocks; ++b) {
    for (uint32_t half = 0; half < 2; ++half) {
      for (uint32_t r = 0; r < kBandRows; ++r) {
        Quads unit = {};
        if (r < band.count) std::memcpy(&unit, band.rows[r] + b * block_bytes + 2 + half * kUnitBytes, kUnitBytes);
        put(band.units, (2 * b + half) * kBandRows + r, unit);
      }
    }
    for (uint32_t r = 0; r < kBandRows; ++r) {
      const float scale = r < band.count ? f16_to_f32(half_of(band.rows[r] + b * block_bytes)) : 0;
      band.scales[b * kBandRows + r] = std::bit_cast<uint32_t>(scale);
    }
  }
}

// f16 scale, f16 minimum (Q4_0: none, it is -8 scales), 16 bytes: element j in the low half of byte j, element j + 16
// in the high half. Ours: word w holds elements 4w ... 4w+3 in its low half and 16 + 4w ... in its high half, the first
// lowest.
template <bool has_minimum>
void pack_q4(const Band& band) {
  constexpr uint32_t head = has_minimum ? 4 : 2, block_bytes = head + kUnitBytes;
  const uint64_t blocks = band.bytes / block_bytes;
  for (uint64_t b = 0; b < blocks; ++b) {
    for (uint32_t r = 0; r < kBandRows; ++r) {
      Quads unit = {};
      if (r < band.count) std::memcpy(&unit, band.rows[r] + b * block_bytes + head, kUnitBytes);
      for (uint32_t& word : unit) {
        word = four_bits_of_bytes(word & 0x0F0F0F0Fu) | four_bits_of_bytes(word >> 4 & 0x0F0F0F0Fu) << 16;
      }
      put(band.units, b * kBandRows + r, unit);
    }
    for (uint32_t r = 0; r < kBandRows; ++r) {
      uint32_t word = 0;
      if (r < band.count) {
        const std::byte* block = band.rows[r] + b * block_bytes;
        const uint16_t scale = half_of(block);
        word = scale | uint32_t{has_minimum ? half_of(block + 2) : minus_power_of_two_times(scale, 3)} << 16;
      }
      band.scales[b * kBandRows + r] = word;
    }
  }
}

typedef uint32_t FourWords __attribute__((vector_size(16)));

FourWords load_four(const uint32_t* from) {
  FourWords words;
  std::memcpy(&words, from, sizeof words);
  return words;
}

void store_four(uint32_t* to, FourWords words) {
  std::memcpy(to, &words, sizeof words);
}

// Word w of row r moves from row * words + w to w * kBandRows + r: four rows and words at a time.
void turn(std::span<const uint32_t> rows, uint32_t words, uint32_t* out) {
  uint32_t w = 0;
  for (; w + 4 <= words; w += 4) {
    for (uint32_t r = 0; r < kBandRows; r += 4) {
      const uint32_t* from = &rows[uint64_t{r} * words + w];
      uint32_t* to = out + w * kBandRows + r;
      const FourWords a = load_four(from), b = load_four(from + words);
      const FourWords c = load_four(from + 2 * words), d = load_four(from + 3 * words);
      const FourWords ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5);
      const FourWords ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
      const FourWords cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5);
      const FourWords cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
      store_four(to, __builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5));
      store_four(to + kBandRows, __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7));
      store_four(to + 2 * kBandRows, __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5));
      store_four(to + 3 * kBandRows, __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7));
    }
  }
  for (; w < words; ++w) {
    for (uint32_t r = 0; r < kBandRows; ++r) out[w * kBandRows + r] = rows[uint64_t{r} * words + w];
  }
}

// The types of words: groups of some 64 words a row are made side by side and then turned.
void pack_groups(WeightType type, const Band& band, std::vector<uint32_t>& scratch) {
  const WordFormat& format = *word_format(type);
  const GroupPacker pack = group_packer(type);
  const uint32_t group_columns = format.group_blocks * 32, group_words = format.group_words();
  const uint32_t groups = (band.cols + group_columns - 1) / group_columns;
  const uint64_t group_bytes = uint64_t{group_columns} / block_size(type).elements * block_size(type).bytes;
  const uint32_t together = std::max(1u, 64 / group_words);
  scratch.assign(uint64_t{kBandRows} * together * group_words, 0u);
  for (uint32_t first = 0; first < groups; first += together) {
    const uint32_t count = std::min(together, groups - first), words = count * group_words;
    for (uint32_t r = 0; r < band.count; ++r) {
      for (uint32_t g = 0; g < count; ++g) {
        const uint32_t columns = std::min(group_columns, band.cols - (first + g) * group_columns);
        pack(band.rows[r] + (first + g) * group_bytes, columns, &scratch[uint64_t{r} * words + g * group_words]);
      }
    }
    std::fill(scratch.begin() + uint64_t{band.count} * words, scratch.end(), 0u);
    turn(scratch, words, &band.units[uint64_t{first} * group_words * kBandRows]);
  }
}

void pack_band(WeightType type, const Band& band, std::vector<uint32_t>& scratch) {
  switch (type) {
    case WeightType::f32:
    case WeightType::f16:
    case WeightType::bf16: return pack_plain(band);
    case WeightType::q8_0: return pack_q8_0(band);
    case WeightType::q4_0: return pack_q4<false>(band);
    case WeightType::q4_1: return pack_q4<true>(band);
    default: return pack_groups(type, band, scratch);
  }
}

class Packer {
 public:
  Packer(std::span<const WeightPart> parts, WeightLayout layout) : type_(parts[0].type), fetcher_(parts, layout) {
    band_.cols = parts[0].cols;
    band_.bytes = row_bytes(parts[0]);
  }

  void pack(const WeightShardLayout& shard, uint64_t index, std::span<uint32_t> units, std::span<uint32_t> scales) {
    const auto first = static_cast<uint32_t>(index * kBandRows);
    const uint32_t start = shard.first_row + first;
    band_.count = std::min(kBandRows, shard.rows - first);
    fetcher_.fetch(start, start + band_.count);
    for (uint32_t r = 0; r < band_.count; ++r) band_.rows[r] = fetcher_.row(start + r);
    band_.units = units;
    band_.scales = scales;
    pack_band(type_, band_, scratch_);
  }

 private:
  WeightType type_;
  RowFetcher fetcher_;
  std::vector<uint32_t> scratch_;
  Band band_;
};

}  // namespace

PackBand band_packer(std::span<const WeightPart> parts, WeightLayout layout) {
  return [packer = std::make_shared<Packer>(parts, layout)](const WeightShardLayout& shard, uint64_t band,
                                                            std::span<uint32_t> units, std::span<uint32_t> scales) {
    packer->pack(shard, band, units, scales);
  };
}

uint64_t bands_of_a_thread(const WeightShardLayout& shard) {
  return std::max<uint64_t>(1, kLeastWords * 4 / shard.band_unit_bytes());
}

void repack(std::span<const WeightPart> parts, WeightLayout layout, const WeightShardLayout& shard,
            std::span<uint32_t> units, std::span<uint32_t> scales) {
  // A band is its own run of words, so that no two threads write to one place.
  const uint64_t unit_words = shard.band_unit_bytes() / 4, scale_words = shard.band_scale_bytes() / 4;
  parallel_in_order(shard.bands(), bands_of_a_thread(shard), [&](const TakeNext& next) {
    const PackBand pack = band_packer(parts, layout);
    for (uint64_t begin = 0, end = 0; next(begin, end);) {
      for (uint64_t band = begin; band < end; ++band) {
        pack(shard, band, units.subspan(band * unit_words, unit_words),
             scales.subspan(band * scale_words, scale_words));
      }
    }
  });
}

}  // namespace canopy::vk
