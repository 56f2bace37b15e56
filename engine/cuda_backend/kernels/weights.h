#pragma once
// Decoding of weights: 32 columns of a row at a time, from the planes of weight_planes.h.

#include "engine/cuda_backend/kernels/common.h"

namespace canopy::cuda {

/// Index of unit `u` of a row, where a row has `units` of them.
CANOPY_DEVICE uint64_t unit_index(uint32_t row, uint32_t units, uint32_t u) {
  return (uint64_t{row / kBand} * units + u) * kBand + row % kBand;
}

/// Parts of a row's scales, as if its units followed each other.
CANOPY_DEVICE Unit scale_unit(const WeightParams& w, uint32_t row, uint32_t unit) {
  return Span<const Unit>{w.scales}[unit_index(row, w.scale_units, unit)];
}
CANOPY_DEVICE uint32_t scale_word(const WeightParams& w, uint32_t row, uint32_t word) {
  return Span<const uint32_t>{w.scales}[unit_index(row, w.scale_units, word / 4) * 4 + word % 4];
}
CANOPY_DEVICE float scale_half(const WeightParams& w, uint32_t row, uint32_t half) {
  return gpu::half_value(static_cast<uint16_t>(scale_word(w, row, half / 2) >> (half % 2 * 16)));
}
CANOPY_DEVICE float low_half(uint32_t word) {
  return gpu::half_value(static_cast<uint16_t>(word));
}
CANOPY_DEVICE float high_half(uint32_t word) {
  return gpu::half_value(static_cast<uint16_t>(word >> 16));
}
CANOPY_DEVICE uint32_t byte_of(const Unit& unit, uint32_t i) {
  return unit.words[i / 4] >> (i % 4 * 8) & 255u;
}

/// value = scale * code + minimum, of columns 0 to 15 and 16 to 31 of a block.
struct BlockScale {
  float scale[2] = {1, 1}, minimum[2] = {0, 0};
};
CANOPY_DEVICE BlockScale both(float scale, float minimum) {
  return {{scale, scale}, {minimum, minimum}};
}

/// The upper bits of a block's codes, where they lie apart.
struct Highs {
  uint32_t words[2] = {};
};
CANOPY_DEVICE Highs no_highs(const WeightParams&, uint32_t, uint32_t) {
  return {};
}
/// One bit for each column.
CANOPY_DEVICE Highs bits_of(const WeightParams& w, uint32_t row, uint32_t block) {
  return {{Span<const uint32_t>{w.highs}[unit_index(row, w.high_units, block / 4) * 4 + block % 4], 0}};
}
/// Two bits for each column.
CANOPY_DEVICE Highs pairs_of(const WeightParams& w, uint32_t row, uint32_t block) {
  const Span<const uint32_t> words{w.highs};
  const uint64_t first = unit_index(row, w.high_units, block / 2) * 4 + block % 2 * 2;
  return {{words[first], words[first + 1]}};
}

/// Column 2i of a word of eight codes is in its lower half, column 2i + 1 in its upper: pairs fall out as two halves.
CANOPY_DEVICE uint32_t nibble(const Unit* units, uint32_t i) {
  return units[0].words[i / 8] >> (i % 8 / 2 * 4 + i % 2 * 16) & 15u;
}
CANOPY_DEVICE float number(int code) {
  return static_cast<float>(code);
}

// Each format: the units of 32 columns (kUnits), whether they have scales, their upper bits, their scales, and code i.

template <uint32_t UNITS>
struct Dense {
  static constexpr uint32_t kUnits = UNITS;
  static constexpr bool kScaled = false;
  CANOPY_DEVICE static Highs highs(const WeightParams& w, uint32_t row, uint32_t block) {
    return no_highs(w, row, block);
  }
  CANOPY_DEVICE static BlockScale scale(const WeightParams&, uint32_t, uint32_t) { return {}; }
};
struct FormatF32 : Dense<8> {
  CANOPY_DEVICE static float code(const Unit* units, const Highs&, uint32_t i) {
    return gpu::from_bits(units[i / 4].words[i % 4]);
  }
};
struct FormatF16 : Dense<4> {
  CANOPY_DEVICE static float code(const Unit* units, const Highs&, uint32_t i) {
    return gpu::half_value(static_cast<uint16_t>(units[i / 8].words[i % 8 / 2] >> (i % 2 * 16)));
  }
};
struct FormatBf16 : Dense<4> {
  CANOPY_DEVICE static float code(const Unit* units, const Highs&, uint32_t i) {
    return gpu::from_bits((units[i / 8].words[i % 8 / 2] >> (i % 2 * 16)) << 16);
  }
};

/// Codes of 4 bits in one unit.
struct Nibbles {
  static constexpr uint32_t kUnits = 1;
  static constexpr bool kScaled = true;
  CANOPY_DEVICE static Highs highs(const WeightParams& w, uint32_t row, uint32_t block) {
    return no_highs(w, row, block);
  }
  CANOPY_DEVICE static float code(const Unit* units, const Highs&, uint32_t i) {
    return number(static_cast<int>(nibble(units, i)));
  }
};
/// And a fifth bit apart.
struct FiveBits : Nibbles {
  CANOPY_DEVICE static Highs highs(const WeightParams& w, uint32_t row, uint32_t block) {
    return bits_of(w, row, block);
  }
  CANOPY_DEVICE static uint32_t five(const Unit* units, const Highs& highs, uint32_t i) {
    return nibble(units, i) | (highs.words[0] >> i & 1u) << 4;
  }
  CANOPY_DEVICE static float code(const Unit* units, const Highs& highs, uint32_t i) {
    return number(static_cast<int>(five(units, highs, i)));
  }
};
/// A half for each block.
struct HalfScale {
  CANOPY_DEVICE static BlockScale scale(const WeightParams& w, uint32_t row, uint32_t block) {
    return both(scale_half(w, row, block), 0);
  }
};
/// Scale and minimum as halves for each block.
struct HalfScaleAndMinimum {
  CANOPY_DEVICE static BlockScale scale(const WeightParams& w, uint32_t row, uint32_t block) {
    const uint32_t word = scale_word(w, row, block);
    return both(low_half(word), high_half(word));
  }
};
/// Of 256 columns one unit as files have it: scale and minimum as halves, then eight pairs of factors of 6 bits.
struct SixBitScales {
  CANOPY_DEVICE static BlockScale scale(const WeightParams& w, uint32_t row, uint32_t block) {
    const Unit unit = scale_unit(w, row, block / 8);
    const uint32_t j = block % 8;
    const uint32_t a = byte_of(unit, 4 + j % 4), b = byte_of(unit, 8 + j % 4), c = byte_of(unit, 12 + j % 4);
    const uint32_t factor = j < 4 ? a & 63u : (c & 15u) | a >> 6 << 4;
    const uint32_t lowest = j < 4 ? b & 63u : c >> 4 | b >> 6 << 4;
    return both(low_half(unit.words[0]) * number(static_cast<int>(factor)),
                -(high_half(unit.words[0]) * number(static_cast<int>(lowest))));
  }
};

struct FormatQ80 : HalfScale {
  static constexpr uint32_t kUnits = 2;
  static constexpr bool kScaled = true;
  CANOPY_DEVICE static Highs highs(const WeightParams& w, uint32_t row, uint32_t block) {
    return no_highs(w, row, block);
  }
  CANOPY_DEVICE static float code(const Unit* units, const Highs&, uint32_t i) {
    return number(static_cast<int8_t>(units[i / 16].words[i % 16 / 4] >> (i % 4 * 8)));
  }
};
struct FormatQ40 : Nibbles, HalfScale {
  CANOPY_DEVICE static float code(const Unit* units, const Highs&, uint32_t i) {
    return number(static_cast<int>(nibble(units, i)) - 8);
  }
};
struct FormatQ41 : Nibbles, HalfScaleAndMinimum {};
struct FormatQ50 : FiveBits, HalfScale {
  CANOPY_DEVICE static float code(const Unit* units, const Highs& highs, uint32_t i) {
    return number(static_cast<int>(five(units, highs, i)) - 16);
  }
};
struct FormatQ51 : FiveBits, HalfScaleAndMinimum {};
struct FormatQ4K : Nibbles, SixBitScales {};
struct FormatQ5K : FiveBits, SixBitScales {};

/// Of 256 columns a unit with 16 pairs of 4 bits, the factors of scale and minimum, which are halves behind all units.
struct FormatQ2K : Nibbles {
  CANOPY_DEVICE static BlockScale scale(const WeightParams& w, uint32_t row, uint32_t block) {
    const uint32_t super = block / 8, supers = w.stored_cols / 256 + (w.stored_cols % 256 != 0);
    const uint32_t word = scale_word(w, row, supers * 4 + super);
    const uint32_t factors = scale_word(w, row, super * 4 + block % 8 / 2) >> (block % 2 * 16);
    const float d = low_half(word), m = high_half(word);
    return {{d * number(factors & 15), d * number(factors >> 8 & 15)},
            {-(m * number(factors >> 4 & 15)), -(m * number(factors >> 12 & 15))}};
  }
};
/// Of 256 columns a unit: the scale as a half, then from its fourth byte on 16 factors of 6 bits as files pack them.
struct FormatQ3K : Nibbles {
  CANOPY_DEVICE static float factor(const Unit& unit, uint32_t i) {
    const uint32_t low = byte_of(unit, 4 + i % 8) >> (i / 8 * 4) & 15u;
    const uint32_t high = byte_of(unit, 12 + i % 4) >> (i / 4 * 2) & 3u;
    return number(static_cast<int>(low | high << 4) - 32);
  }
  CANOPY_DEVICE static BlockScale scale(const WeightParams& w, uint32_t row, uint32_t block) {
    const Unit unit = scale_unit(w, row, block / 8);
    const float d = low_half(unit.words[0]);
    return {{d * factor(unit, block % 8 * 2), d * factor(unit, block % 8 * 2 + 1)}, {0, 0}};
  }
  CANOPY_DEVICE static float code(const Unit* units, const Highs&, uint32_t i) {
    return number(static_cast<int>(nibble(units, i)) - 4);
  }
};
/// Of 256 columns a unit with 16 factors, signed bytes; the scales are halves behind all units.
struct FormatQ6K : Nibbles {
  CANOPY_DEVICE static Highs highs(const WeightParams& w, uint32_t row, uint32_t block) {
    return pairs_of(w, row, block);
  }
  CANOPY_DEVICE static BlockScale scale(const WeightParams& w, uint32_t row, uint32_t block) {
    const uint32_t super = block / 8, supers = w.stored_cols / 256 + (w.stored_cols % 256 != 0);
    const float d = scale_half(w, row, supers * 8 + super);
    const uint32_t factors = scale_word(w, row, super * 4 + block % 8 / 2) >> (block % 2 * 16);
    return {{d * number(static_cast<int8_t>(factors)), d * number(static_cast<int8_t>(factors >> 8))}, {0, 0}};
  }
  CANOPY_DEVICE static float code(const Unit* units, const Highs& highs, uint32_t i) {
    const uint32_t high = highs.words[i / 16] >> (i % 16 * 2) & 3u;
    return number(static_cast<int>(nibble(units, i) | high << 4) - 32);
  }
};

/// Entry i of 16 signed bytes.
CANOPY_DEVICE float table_entry(uint64_t first, uint64_t second, uint32_t i) {
  return number(static_cast<int8_t>((i < 8 ? first : second) >> (i % 8 * 8)));
}
/// -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113
struct Codebook : Nibbles {
  CANOPY_DEVICE static float code(const Unit* units, const Highs&, uint32_t i) {
    return table_entry(0xF6EADDCFBFAD9881ull, 0x7159453526190D01ull, nibble(units, i));
  }
};
struct FormatIq4Nl : Codebook, HalfScale {};
/// Of 256 columns two words: the scale as a half and the upper bits of eight factors, then their lower 4 bits.
struct FormatIq4Xs : Codebook {
  CANOPY_DEVICE static BlockScale scale(const WeightParams& w, uint32_t row, uint32_t block) {
    const uint32_t first = scale_word(w, row, block / 8 * 2), lows = scale_word(w, row, block / 8 * 2 + 1);
    const uint32_t j = block % 8;
    const uint32_t factor = (lows >> (j * 4) & 15u) | (first >> (16 + 2 * j) & 3u) << 4;
    return both(low_half(first) * number(static_cast<int>(factor) - 32), 0);
  }
};
/// A byte e for each block, 2^(e - 128), and twice the values 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives.
struct FormatMxfp4 : Nibbles {
  CANOPY_DEVICE static BlockScale scale(const WeightParams& w, uint32_t row, uint32_t block) {
    const uint32_t e = scale_word(w, row, block / 4) >> (block % 4 * 8) & 255u;
    return both(gpu::from_bits(e < 2 ? 0x00200000u << e : (e - 1) << 23), 0);
  }
  CANOPY_DEVICE static float code(const Unit* units, const Highs&, uint32_t i) {
    return table_entry(0x0C08060403020100ull, 0xF4F8FAFCFDFEFF00ull, nibble(units, i));
  }
};

/// 32 columns of a row.
template <class Format>
struct Block {
  Unit units[Format::kUnits];
  Highs highs;
  BlockScale scale;

  CANOPY_DEVICE void load(const WeightParams& w, uint32_t row, uint32_t block) {
    const Span<const Unit> all{w.units};
    const uint32_t row_units = w.stored_cols / 32 * Format::kUnits;
    for (uint32_t u = 0; u < Format::kUnits; ++u)
      units[u] = all[unit_index(row, row_units, block * Format::kUnits + u)];
    highs = Format::highs(w, row, block);
    scale = Format::scale(w, row, block);
  }
  CANOPY_DEVICE float element(uint32_t i) const {
    const float code = Format::code(units, highs, i);
    return Format::kScaled ? fmaf(scale.scale[i / 16], code, scale.minimum[i / 16]) : code;
  }
};

}  // namespace canopy::cuda

// clang-format off
/// Applies X(name, Format) to all of them.
#define CANOPY_WEIGHT_FORMATS(X)                                            \
  X(f32, FormatF32) X(f16, FormatF16) X(bf16, FormatBf16)                   \
  X(q8_0, FormatQ80) X(q4_0, FormatQ40) X(q4_1, FormatQ41)                  \
  X(q5_0, FormatQ50) X(q5_1, FormatQ51)                                     \
  X(q2_k, FormatQ2K) X(q3_k, FormatQ3K) X(q4_k, FormatQ4K)                  \
  X(q5_k, FormatQ5K) X(q6_k, FormatQ6K)                                     \
  X(iq4_nl, FormatIq4Nl) X(iq4_xs, FormatIq4Xs) X(mxfp4, FormatMxfp4)
// clang-format on
