#include "engine/vulkan/weight_repack.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <memory>
#include <vector>

#include "engine/base/half.h"
#include "engine/base/parallel.h"
#include "engine/compute/weight_parts.h"
#include "engine/vulkan/word_layout.h"

namespace canopy::vk {

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

using Unit = std::array<uint32_t, 4>;

void put(std::span<uint32_t> units, uint64_t index, const Unit& unit) {
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
      Unit unit = {};
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
        Unit unit = {};
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
      Unit unit = {};
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

// The types of word_layout.h: groups of some 64 words a row are made side by side and then turned.
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
