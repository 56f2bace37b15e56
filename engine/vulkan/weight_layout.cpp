#include "engine/vulkan/weight_layout.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>

#include "engine/base/error.h"
#include "engine/base/half.h"
#include "engine/base/parallel.h"
#include "engine/vulkan/word_layout.h"

namespace canopy::vk {

namespace {

constexpr uint32_t kBlock = 32;
constexpr uint64_t kLeastWords = 1 << 16;  // least work for a thread: starting it costs as much as fewer words

uint32_t round_up(uint32_t value, uint32_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

bool has_scales(WeightType type) {
  return type == WeightType::q8_0 || type == WeightType::q4_1 || type == WeightType::q4_0;
}

uint32_t blocks_of(uint32_t cols) {
  return (cols + kBlock - 1) / kBlock;
}

uint32_t units_of(WeightType type, uint32_t cols) {
  return blocks_of(cols) * (kBlock / columns_per_unit(type));
}

// The rows of a joined matrix, fetched a few at a time: parts need not have all of theirs at once.
class RowFetcher {
 public:
  RowFetcher(std::span<const WeightPart> parts, WeightLayout layout)
      : parts_(parts),
        paired_(layout == WeightLayout::paired),
        row_bytes_(row_bytes(parts[0])),
        pieces_(parts.size()) {}

  // Fetches rows [begin, end) of the joined matrix.
  void fetch(uint32_t begin, uint32_t end) {
    uint32_t start = 0;  // of the part, where parts are stacked
    for (uint32_t p = 0; p < parts_.size(); ++p) {
      const uint32_t rows = parts_[p].rows;
      Piece& piece = pieces_[p];
      piece.first = paired_ ? (begin + 1 - p) / 2 : std::clamp(begin, start, start + rows) - start;
      piece.end = paired_ ? (end + 1 - p) / 2 : std::clamp(end, start, start + rows) - start;
      if (piece.end > piece.first) {
        piece.data = read_rows(parts_[p], piece.first, piece.end - piece.first, piece.scratch).data();
      }
      start += rows;
    }
  }

  // Where a fetched row starts. Valid until the next fetch.
  const std::byte* row(uint32_t row) const {
    if (paired_) return pieces_[row % 2].at(row / 2, row_bytes_);
    for (uint32_t p = 0; p < parts_.size(); ++p) {
      if (row < parts_[p].rows) return pieces_[p].at(row, row_bytes_);
      row -= parts_[p].rows;
    }
    return nullptr;
  }

 private:
  struct Piece {
    uint32_t first = 0, end = 0;  // rows of its part
    const std::byte* data = nullptr;
    std::vector<std::byte> scratch;
    const std::byte* at(uint32_t row, uint64_t row_bytes) const { return data + (row - first) * row_bytes; }
  };

  std::span<const WeightPart> parts_;
  bool paired_;
  uint64_t row_bytes_;
  std::vector<Piece> pieces_;
};

// Where a shard's words of one row go: word w of unit u, and the scale word of a block; or, of types kept as words,
// word i.
class RowTarget {
 public:
  RowTarget(std::span<uint32_t> units, std::span<uint32_t> scales, uint32_t stored_rows, uint32_t row)
      : units_(band(units, stored_rows, row)), scales_(band(scales, stored_rows, row)), row_(row % kBandRows) {}

  uint32_t& word(uint32_t index) const { return units_[(uint64_t{index / 4} * kBandRows + row_) * 4 + index % 4]; }
  uint32_t& plain_word(uint32_t index) const { return units_[uint64_t{index} * kBandRows + row_]; }
  uint32_t& scale(uint32_t block) const { return scales_[uint64_t{block} * kBandRows + row_]; }

 private:
  static std::span<uint32_t> band(std::span<uint32_t> all, uint32_t stored_rows, uint32_t row) {
    const size_t words = all.size() / (stored_rows / kBandRows);
    return all.subspan(row / kBandRows * words, words);
  }

  std::span<uint32_t> units_, scales_;
  uint32_t row_;
};

// f32, f16, bf16: the file's elements in order, words in order.
void pack_plain(const std::byte* from, uint64_t bytes, const RowTarget& to) {
  for (uint32_t i = 0; i * 4 < bytes; ++i) {
    uint32_t word = 0;
    std::memcpy(&word, from + uint64_t{i} * 4, std::min<uint64_t>(4, bytes - uint64_t{i} * 4));
    to.word(i) = word;
  }
}

// f16 scale, 32 signed bytes.
void pack_q8_0(const std::byte* from, uint32_t blocks, const RowTarget& to) {
  for (uint32_t b = 0; b < blocks; ++b, from += 34) {
    uint16_t d;
    std::memcpy(&d, from, 2);
    to.scale(b) = std::bit_cast<uint32_t>(f16_to_f32(d));
    for (uint32_t i = 0; i < 8; ++i) std::memcpy(&to.word(b * 8 + i), from + 2 + i * 4, 4);
  }
}

// f16 scale, f16 minimum (Q4_0: none, it is -8 scales), 16 bytes: element j in the low half of byte j, element j + 16
// in the high half. Ours: word w holds elements 4w ... 4w+3 in its low half and 16 + 4w ... in its high half, the first
// lowest.
void pack_q4(const std::byte* from, bool has_minimum, uint32_t blocks, const RowTarget& to) {
  for (uint32_t b = 0; b < blocks; ++b, from += 16) {
    uint16_t halves[2];
    std::memcpy(halves, from, 4);
    if (!has_minimum) halves[1] = f32_to_f16(-8.0f * f16_to_f32(halves[0]));
    to.scale(b) = halves[0] | uint32_t{halves[1]} << 16;
    from += has_minimum ? 4 : 2;
    for (uint32_t w = 0; w < 4; ++w) {
      uint32_t word = 0;
      for (uint32_t i = 0; i < 8; ++i) {
        const uint32_t element = w * 4 + i % 4 + (i / 4) * 16;
        const uint32_t byte = std::to_integer<uint32_t>(from[element % 16]);
        word |= (element < 16 ? byte & 15u : byte >> 4) << (4 * i);
      }
      to.word(b * 4 + w) = word;
    }
  }
}

// Rows [begin, end) of a shard.
void repack_rows(std::span<const WeightPart> parts, RowFetcher& rows, const WeightShardLayout& shard,
                 std::span<uint32_t> units, std::span<uint32_t> scales, uint32_t begin, uint32_t end) {
  const WeightType type = parts[0].type;
  const uint32_t blocks = blocks_of(parts[0].cols);
  rows.fetch(shard.first_row + begin, shard.first_row + end);
  for (uint32_t row = begin; row < end; ++row) {
    const std::byte* from = rows.row(shard.first_row + row);
    const RowTarget to(units, scales, shard.stored_rows, row);
    switch (type) {
      case WeightType::f32:
      case WeightType::f16:
      case WeightType::bf16: pack_plain(from, row_bytes(parts[0]), to); break;
      case WeightType::q8_0: pack_q8_0(from, blocks, to); break;
      case WeightType::q4_0: pack_q4(from, false, blocks, to); break;
      case WeightType::q4_1: pack_q4(from, true, blocks, to); break;
      default: pack_words(type, from, parts[0].cols, [&](uint32_t i, uint32_t word) { to.plain_word(i) = word; });
    }
  }
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

WeightExtent joined_extent(std::span<const WeightPart> parts, WeightLayout layout) {
  if (parts.empty()) throw bad_input("A weight needs at least one part.");
  if (layout == WeightLayout::paired && (parts.size() != 2 || parts[0].rows != parts[1].rows)) {
    throw bad_input("A paired weight needs two parts of the same number of rows.");
  }
  WeightExtent extent{0, parts[0].cols};
  uint64_t rows = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    const WeightPart& part = parts[i];
    const std::string which = "Part " + std::to_string(i) + " of a weight";
    if (part.type != parts[0].type || part.cols != parts[0].cols) {
      throw bad_input(which + " is " + to_string(part.type) + " with " + std::to_string(part.cols) +
                      " columns; the first is " + to_string(parts[0].type) + " with " + std::to_string(parts[0].cols) +
                      ": all must agree.");
    }
    if (part.rows == 0 || part.cols == 0 || part.cols % block_size(part.type).elements != 0) {
      throw bad_input(which + " has shape [" + std::to_string(part.rows) + ", " + std::to_string(part.cols) +
                      "]; rows must be at least 1 and columns a multiple of " +
                      std::to_string(block_size(part.type).elements) + ".");
    }
    if (!part.data.empty() && part.data.size() != row_bytes(part) * part.rows) {
      throw bad_input(which + " has " + std::to_string(part.data.size()) + " bytes; its shape takes " +
                      std::to_string(row_bytes(part) * part.rows) + ".");
    }
    rows += part.rows;
  }
  if (rows > 0x7FFFFFFFu) throw bad_input("A weight has " + std::to_string(rows) + " rows; at most 2147483647 fit.");
  extent.rows = static_cast<uint32_t>(rows);
  return extent;
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

void repack(std::span<const WeightPart> parts, WeightLayout layout, const WeightShardLayout& shard,
            std::span<uint32_t> units, std::span<uint32_t> scales) {
  // A band is its own run of words, so that no two threads write to one place.
  const uint32_t bands = shard.stored_rows / kBandRows;
  const uint64_t unit_words = units.size() / bands, scale_words = scales.size() / bands;
  parallel_for(bands, std::max<uint64_t>(1, kLeastWords / unit_words), [&](uint64_t begin, uint64_t end) {
    std::ranges::fill(units.subspan(begin * unit_words, (end - begin) * unit_words), 0u);
    std::ranges::fill(scales.subspan(begin * scale_words, (end - begin) * scale_words), 0u);
    RowFetcher rows(parts, layout);
    for (uint64_t band = begin; band < end; ++band) {
      const uint64_t last = std::min<uint64_t>((band + 1) * kBandRows, shard.rows);
      repack_rows(parts, rows, shard, units, scales, static_cast<uint32_t>(band * kBandRows),
                  static_cast<uint32_t>(last));
    }
  });
}

}  // namespace canopy::vk
