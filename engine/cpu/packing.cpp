#include "engine/cpu/packing.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "engine/base/machine.h"
#include "engine/base/numbers.h"
#include "engine/compute/weights.h"
#include "engine/format/dequantize.h"

namespace canopy::cpu {
namespace {

constexpr uint32_t kLine = 64;
constexpr uint32_t kSuper = 256;  // columns of a block of the K-quants
constexpr uint64_t kBytesOfAThread = 256 << 10;

bool is_nibbles(Form form) {
  return form == Form::nibbles || form == Form::nibbles_with_sub_scales;
}
bool has_sub_scales(Form form) {
  return form == Form::nibbles_with_sub_scales || form == Form::bytes_with_sub_scales;
}
uint32_t dense_bytes(Form form) {
  return form == Form::f32 ? 4 : 2;
}
bool is_dense_form(Form form) {
  return form == Form::f32 || form == Form::f16 || form == Form::bf16;
}

/// Of a band: bytes of the scales of 32 columns (plain) or of 256 (with sub-scales).
uint32_t scale_bytes(const Packed& w) {
  if (!has_sub_scales(w.form)) return w.has_minimums ? 64 : 32;
  return 64 + 8 * (is_nibbles(w.form) ? 32 : w.has_minimums ? 64 : 32);
}
/// Where the whole numbers of block `block` of 256 columns lie.
uint32_t sub_scales_at(const Packed& w, uint32_t block) {
  return 64 + block * (scale_bytes(w) - 64) / 8;
}

Form form_of(WeightType type) {
  switch (type) {
    case WeightType::f32: return Form::f32;
    case WeightType::f16: return Form::f16;
    case WeightType::bf16: return Form::bf16;
    case WeightType::q4_0:
    case WeightType::q4_1: return Form::nibbles;
    case WeightType::q4_k: return Form::nibbles_with_sub_scales;
    case WeightType::q2_k:
    case WeightType::q3_k:
    case WeightType::q5_k:
    case WeightType::q6_k:
    case WeightType::iq4_xs: return Form::bytes_with_sub_scales;
    case WeightType::q8_0:
    case WeightType::q5_0:
    case WeightType::q5_1:
    case WeightType::iq4_nl:
    case WeightType::mxfp4: break;
  }
  return Form::bytes;
}

// ---- blocks of files ----------------------------------------------------------------------------------------------

/// A block of a file in parts: 32 or 256 codes and what they are multiplied by (see Form). Offsets in bytes are those
/// of engine/format/dequantize.cpp, which says how each type is laid out.
struct Block {
  std::array<int16_t, kSuper> codes;
  uint16_t scale = 0, minimum = 0;          // halves, or the upper half of a float
  std::array<int16_t, 16> sub_scales = {};  // of 16 columns each
  std::array<uint8_t, 16> sub_minimums = {};
};

uint16_t word_at(const uint8_t* block, size_t at) {
  uint16_t word;
  std::memcpy(&word, block + at, sizeof word);
  return word;
}
uint32_t double_word_at(const uint8_t* block, size_t at) {
  uint32_t word;
  std::memcpy(&word, block + at, sizeof word);
  return word;
}

constexpr std::array<int16_t, 16> kNonlinearLevels = {-127, -104, -83, -65, -49, -35, -22, -10,
                                                      1,    13,   25,  38,  53,  69,  89,  113};
constexpr std::array<int16_t, 16> kDoubledE2m1 = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

/// Codes of 32 elements, split in the middle: byte i has element i in its low, i + 16 in its high half.
template <class Change>
void split_nibbles(const uint8_t* from, int16_t* to, Change change) {
  for (uint32_t i = 0; i < 16; ++i) {
    to[i] = change(i, from[i] & 0xf);
    to[i + 16] = change(i + 16, from[i] >> 4);
  }
}
const auto as_it_is = [](uint32_t, int code) { return static_cast<int16_t>(code); };

void read_with_fifth_bits(const uint8_t* b, size_t bits_at, size_t codes_at, int less, Block& block) {
  const uint32_t fifth = double_word_at(b, bits_at);
  split_nibbles(b + codes_at, block.codes.data(), [&](uint32_t i, int code) {
    return static_cast<int16_t>((code | static_cast<int>(fifth >> i & 1) << 4) - less);
  });
}

void read_q2_k(const uint8_t* b, Block& block) {
  block.scale = word_at(b, 80);
  block.minimum = word_at(b, 82);
  for (uint32_t sub = 0; sub < 16; ++sub) {
    block.sub_scales[sub] = b[sub] & 0xf;
    block.sub_minimums[sub] = b[sub] >> 4;
    const uint8_t* codes = b + 16 + 32 * (sub / 8) + sub % 2 * 16;
    for (uint32_t i = 0; i < 16; ++i) block.codes[16 * sub + i] = codes[i] >> (sub % 8 / 2 * 2) & 3;
  }
}

void read_q3_k(const uint8_t* b, Block& block) {
  block.scale = word_at(b, 108);
  for (uint32_t sub = 0; sub < 16; ++sub) {
    const int low_scale = b[96 + sub % 8] >> (sub / 8 * 4) & 0xf, high_scale = b[104 + sub % 4] >> (sub / 4 * 2) & 3;
    block.sub_scales[sub] = static_cast<int16_t>((low_scale | high_scale << 4) - 32);
    const uint32_t within = sub % 2 * 16;
    for (uint32_t i = 0; i < 16; ++i) {
      const int low = b[32 + 32 * (sub / 8) + within + i] >> (sub % 8 / 2 * 2) & 3,
                high = b[within + i] >> (sub / 2) & 1;
      block.codes[16 * sub + i] = static_cast<int16_t>((low | high << 2) - 4);
    }
  }
}

void read_q4_or_5_k(const uint8_t* b, bool fifth_bits, Block& block) {
  block.scale = word_at(b, 0);
  block.minimum = word_at(b, 2);
  const ScalesAndMinimums packed = unpack_scales(std::span<const uint8_t, 12>(b + 4, 12));
  for (uint32_t sub = 0; sub < 8; ++sub) {
    for (uint32_t half = 0; half < 2; ++half) {
      block.sub_scales[2 * sub + half] = packed.scales[sub];
      block.sub_minimums[2 * sub + half] = packed.minimums[sub];
    }
    const uint8_t* codes = b + (fifth_bits ? 48 : 16) + sub / 2 * 32;
    for (uint32_t j = 0; j < 32; ++j) {
      int code = codes[j] >> (sub % 2 * 4) & 0xf;
      if (fifth_bits) code |= (b[16 + j] >> sub & 1) << 4;
      block.codes[32 * sub + j] = static_cast<int16_t>(code);
    }
  }
}

void read_q6_k(const uint8_t* b, Block& block) {
  block.scale = word_at(b, 208);
  for (uint32_t sub = 0; sub < 16; ++sub) {
    block.sub_scales[sub] = static_cast<int8_t>(b[192 + sub]);
    const uint32_t half = sub / 8, quarter = sub % 8 / 2, within = sub % 2 * 16;
    for (uint32_t i = 0; i < 16; ++i) {
      const int low = b[64 * half + quarter % 2 * 32 + within + i] >> (quarter / 2 * 4) & 0xf;
      const int high = b[128 + 32 * half + within + i] >> (quarter * 2) & 3;
      block.codes[16 * sub + i] = static_cast<int16_t>((low | high << 4) - 32);
    }
  }
}

void read_iq4_xs(const uint8_t* b, Block& block) {
  block.scale = word_at(b, 0);
  for (uint32_t sub = 0; sub < 8; ++sub) {
    const int low = b[4 + sub / 2] >> (sub % 2 * 4) & 0xf, high = word_at(b, 2) >> (2 * sub) & 3;
    block.sub_scales[2 * sub] = block.sub_scales[2 * sub + 1] = static_cast<int16_t>((low | high << 4) - 32);
    split_nibbles(b + 8 + 16 * sub, block.codes.data() + 32 * sub,
                  [](uint32_t, int code) { return kNonlinearLevels[static_cast<size_t>(code)]; });
  }
}

void read_block(WeightType type, const uint8_t* b, Block& block) {
  switch (type) {
    case WeightType::q4_0:
      block.scale = word_at(b, 0);
      split_nibbles(b + 2, block.codes.data(), as_it_is);
      break;
    case WeightType::q4_1:
      block.scale = word_at(b, 0);
      block.minimum = word_at(b, 2);
      split_nibbles(b + 4, block.codes.data(), as_it_is);
      break;
    case WeightType::q5_0:
      block.scale = word_at(b, 0);
      read_with_fifth_bits(b, 2, 6, 16, block);
      break;
    case WeightType::q5_1:
      block.scale = word_at(b, 0);
      block.minimum = word_at(b, 2);
      read_with_fifth_bits(b, 4, 8, 0, block);
      break;
    case WeightType::q8_0:
      block.scale = word_at(b, 0);
      for (uint32_t i = 0; i < kBlock; ++i) block.codes[i] = static_cast<int8_t>(b[2 + i]);
      break;
    case WeightType::iq4_nl:
      block.scale = word_at(b, 0);
      split_nibbles(b + 2, block.codes.data(),
                    [](uint32_t, int code) { return kNonlinearLevels[static_cast<size_t>(code)]; });
      break;
    case WeightType::mxfp4:
      // Half of the scale, 2^(byte - 128): the smallest two are subnormal.
      block.scale = static_cast<uint16_t>(b[0] < 2 ? 0x20 << b[0] : (b[0] - 1) << 7);
      split_nibbles(b + 1, block.codes.data(),
                    [](uint32_t, int code) { return kDoubledE2m1[static_cast<size_t>(code)]; });
      break;
    case WeightType::q2_k: read_q2_k(b, block); break;
    case WeightType::q3_k: read_q3_k(b, block); break;
    case WeightType::q4_k: read_q4_or_5_k(b, false, block); break;
    case WeightType::q5_k: read_q4_or_5_k(b, true, block); break;
    case WeightType::q6_k: read_q6_k(b, block); break;
    case WeightType::iq4_xs: read_iq4_xs(b, block); break;
    case WeightType::f32:
    case WeightType::f16:
    case WeightType::bf16: break;
  }
}

// ---- bands --------------------------------------------------------------------------------------------------------

/// The byte of a line that has the code of column k of its block, and of nibbles which half.
struct CodePlace {
  uint32_t byte, shift;
};
CodePlace place_of(bool nibbles, uint32_t lane, uint32_t k) {
  if (nibbles) {
    const uint32_t within = k % 8, nibble = within / 2;
    return {k / 8 * kLine + lane * 4 + within % 2 * 2 + nibble / 2, nibble % 2 * 4};
  }
  const uint32_t within = k % 4;
  return {k / 4 * kLine + lane * 4 + within % 2 * 2 + within / 2, 0};
}

void put_half(uint8_t* to, uint32_t lane, uint16_t half) {
  std::memcpy(to + 2 * lane, &half, sizeof half);
}

void pack_dense_row(const Packed& w, const uint8_t* row, uint32_t lane, uint8_t* band) {
  const uint32_t size = dense_bytes(w.form);
  for (uint32_t k = 0; k < w.cols; ++k)
    std::memcpy(band + (size_t{k} * kBand + lane) * size, row + size_t{k} * size, size);
}

void pack_row(const Packed& w, WeightType type, const uint8_t* row, uint32_t lane, uint8_t* band) {
  if (is_dense_form(w.form)) return pack_dense_row(w, row, lane, band);
  const bool nibbles = is_nibbles(w.form);
  const BlockSize size = block_size(type);
  const uint32_t lines = nibbles ? 4 : 8;
  Block block;
  for (uint32_t f = 0; f < w.cols / size.elements; ++f) {
    read_block(type, row + size_t{f} * size.bytes, block);
    uint8_t* scales = band + w.scales_at + size_t{f} * scale_bytes(w);
    put_half(scales, lane, block.scale);
    if (w.has_minimums || has_sub_scales(w.form)) put_half(scales + 32, lane, block.minimum);
    for (uint32_t k = 0; k < size.elements; k += kBlock) {
      uint8_t* codes = band + (size_t{f} * size.elements + k) / kBlock * lines * kLine;
      for (uint32_t i = 0; i < kBlock; ++i) {
        const CodePlace place = place_of(nibbles, lane, i);
        const auto code = static_cast<uint8_t>(block.codes[k + i]);
        codes[place.byte] = nibbles ? static_cast<uint8_t>(codes[place.byte] | code << place.shift) : code;
      }
      if (!has_sub_scales(w.form)) continue;
      uint8_t* sub = scales + sub_scales_at(w, k / kBlock);
      if (nibbles) {
        sub[lane] = static_cast<uint8_t>(block.sub_scales[k / 16]);
        sub[16 + lane] = block.sub_minimums[k / 16];
        continue;
      }
      for (uint32_t half = 0; half < 2; ++half) {
        sub[16 * half + lane] = static_cast<uint8_t>(block.sub_scales[k / 16 + half]);
        if (w.has_minimums) sub[32 + 16 * half + lane] = block.sub_minimums[k / 16 + half];
      }
    }
  }
}

float half_at(const uint8_t* from, uint32_t lane) {
  return f16_to_f32(word_at(from, 2 * lane));
}

}  // namespace

Packed packed_form(WeightType type, uint32_t rows, uint32_t cols) {
  Packed w;
  w.form = form_of(type);
  w.rows = rows;
  w.cols = cols;
  w.bands = (rows + kBand - 1) / kBand;
  w.minus_eight = type == WeightType::q4_0;
  w.brain_scales = type == WeightType::mxfp4;
  w.has_minimums = type == WeightType::q4_1 || type == WeightType::q5_1 || type == WeightType::q2_k ||
                   type == WeightType::q4_k || type == WeightType::q5_k;
  if (is_dense_form(w.form)) {
    w.band_bytes = (uint64_t{cols} * kBand * dense_bytes(w.form) + kLine - 1) / kLine * kLine;
    return w;
  }
  w.scales_at = uint64_t{cols} / kBlock * (is_nibbles(w.form) ? 4 : 8) * kLine;
  const uint32_t scaled = has_sub_scales(w.form) ? kSuper : kBlock;
  w.band_bytes = (w.scales_at + uint64_t{cols} / scaled * scale_bytes(w) + kLine - 1) / kLine * kLine;
  return w;
}

void pack_bands(std::span<const WeightPart> parts, WeightLayout layout, const Packed& form, uint32_t first,
                uint32_t end, std::span<uint8_t> to) {
  const WeightType type = parts[0].type;
  // Bands at a time: few enough that what is fetched stays in a cache.
  const uint64_t piece = std::clamp<uint64_t>(kBytesOfAThread / std::max<uint64_t>(form.band_bytes, 1), 1, 64);
  parallel_in_order(end - first, piece, [&](const TakeNext& next) {
    RowFetcher fetcher(parts, layout);
    uint64_t from_band = 0, to_band = 0;
    while (next(from_band, to_band)) {
      const auto from_row = static_cast<uint32_t>((first + from_band) * kBand);
      const auto end_row = static_cast<uint32_t>(std::min<uint64_t>((first + to_band) * kBand, form.rows));
      fetcher.fetch(from_row, end_row);
      for (uint32_t row = from_row; row < end_row; ++row) {
        const auto* from = reinterpret_cast<const uint8_t*>(fetcher.row(row));
        pack_row(form, type, from, row % kBand, to.data() + (row / kBand - first) * form.band_bytes);
      }
    }
  });
}

void unpack_row(const Packed& w, uint32_t row, float* to) {
  const uint8_t* band = w.data + row / kBand * w.band_bytes;
  const uint32_t lane = row % kBand;
  if (is_dense_form(w.form)) {
    for (uint32_t k = 0; k < w.cols; ++k) {
      const uint8_t* from = band + (size_t{k} * kBand + lane) * dense_bytes(w.form);
      if (w.form == Form::f32) {
        to[k] = std::bit_cast<float>(double_word_at(from, 0));
      } else {
        to[k] = w.form == Form::f16 ? f16_to_f32(word_at(from, 0)) : bf16_to_f32(word_at(from, 0));
      }
    }
    return;
  }
  const bool nibbles = is_nibbles(w.form), sub_scales = has_sub_scales(w.form);
  for (uint32_t k = 0; k < w.cols; ++k) {
    const uint32_t b = k / kBlock;
    const CodePlace place = place_of(nibbles, lane, k % kBlock);
    const uint8_t byte = band[size_t{b} * (nibbles ? 4 : 8) * kLine + place.byte];
    const int code = nibbles ? (byte >> place.shift & 0xf) - (w.minus_eight ? 8 : 0) : static_cast<int8_t>(byte);
    const uint8_t* scales = band + w.scales_at + size_t{sub_scales ? b / 8 : b} * scale_bytes(w);
    float scale = w.brain_scales ? bf16_to_f32(word_at(scales, 2 * lane)) : half_at(scales, lane);
    float minimum = w.has_minimums && !sub_scales ? half_at(scales + 32, lane) : 0;
    if (sub_scales) {
      const uint8_t* sub = scales + sub_scales_at(w, b % 8);
      const uint32_t half = nibbles ? 0 : k % kBlock / 16;
      scale *= nibbles ? static_cast<float>(sub[lane]) : static_cast<float>(static_cast<int8_t>(sub[16 * half + lane]));
      if (w.has_minimums) minimum = -(half_at(scales + 32, lane) * sub[(nibbles ? 16 : 32 + 16 * half) + lane]);
    }
    to[k] = scale * static_cast<float>(code);
    if (w.has_minimums) to[k] += minimum;
  }
}

}  // namespace canopy::cpu
