#pragma once
// Decoding of weights in tiles (params.h): eight columns of a row at a time, as halves for tensor cores, or one column
// as f32.
//
// Of a quantized weight, halves are scale * code + minimum in the arithmetic of halves, one instruction for two of
// them: a half whose exponent bits are zero is a subnormal number, so a code IS a half, code * 2^-24, or 16 times that
// where it begins four bits higher, and multiply-adds take subnormal numbers as they take others. Scales have the 2^24
// in them, and as halves end at 65504, tiles have weights in a unit of their own, a power of two for each weight
// (WeightParams): its largest scale is 2^11 to 2^15 in tiles, and sums of products are multiplied by the unit in f32,
// which is exact. A minimum, or what a scale makes of the number that codes are less by, is added in the same unit. So
// there is one rounding, and one of scale and minimum where those are products themselves; what is below 2^-24 of a
// unit is rounded to that, 2^-11 of a step of the weight's largest scale at most, also where a weight's scales are far
// apart.
//
// The scales could be applied to f32 sums of 32 columns instead, which would save the multiply-add of each pair: of
// Q4_K 16 instructions for 16 rows and 32 columns, but cost 4 for each 8 rows of the pass, or 8 with a minimum. That is
// even at 8 rows and a loss at 16 and more, and all widths must have one arithmetic.
//
// BF16 is rounded to halves: those have the bits of every number from 2^-17 to 2^16, smaller ones are off by 2^-25 at
// most. Instructions for BF16 would need activations in BF16, with 8 bits where halves have 11.

#include "cuda_backend/kernels/common.h"

namespace canopy::cuda {

CANOPY_DEVICE float low_half(uint32_t word) {
  return gpu::half_value(static_cast<uint16_t>(word));
}
CANOPY_DEVICE float high_half(uint32_t word) {
  return gpu::half_value(static_cast<uint16_t>(word >> 16));
}
CANOPY_DEVICE float number(int code) {
  return static_cast<float>(code);
}

/// Two halves of the same value.
CANOPY_SHARED constexpr uint32_t half_twice(uint32_t bits) {
  return bits | bits << 16;
}

/// value = scale * code + minimum, of columns 0 to 15 and 16 to 31 of a block; in tiles' numbers, 2^24 / unit times the
/// weight's.
struct BlockScale {
  float scale[2] = {1, 1}, minimum[2] = {0, 0};
};
CANOPY_DEVICE BlockScale both(float scale, float minimum) {
  return {{scale, scale}, {minimum, minimum}};
}
/// The same as halves, the minimum in the weight's unit, in as few words as they fit into: what is in them the kinds of
/// scales say.
struct HalfScale {
  uint32_t words[3] = {};
};
// Numbers that scales are multiplied by, as halves: 1, 1/16 for codes four bits higher, and what makes -offset * unit
// of a scale, -offset * 2^-24, which has the offset's bits.
constexpr uint32_t kHalfOne = 0x3C00u, kHalfSixteenth = 0x2C00u;
CANOPY_SHARED constexpr uint32_t half_offset(uint32_t offset) {
  return 0x8000u | offset;
}

/// A block of a row of a tile, in memory that Memory reads: `step` and `super` are where the step's bytes and those
/// behind both steps begin, `place` is 4 * row in the tile + block of the step. So what a step has for each block of
/// each row is at `place`, and in one of the two blocks of a warp's lane at its number.
template <class Memory>
struct TileBlock {
  Memory memory;
  uint32_t step, super, place;

  CANOPY_DEVICE uint32_t row() const { return place / 4; }
  CANOPY_DEVICE uint32_t q() const { return place % 4; }

  CANOPY_DEVICE uint16_t half(uint32_t at) const { return memory.template read<uint16_t>(at); }
  CANOPY_DEVICE uint32_t word(uint32_t at) const { return memory.template read<uint32_t>(at); }
  CANOPY_DEVICE uint32_t byte(uint32_t at) const { return memory.template read<uint8_t>(at); }
};

// ---- scales: of a block in step `parity` of a tile ------------------------------------------------------------------
// Each kind: in f32 (value) and as halves (halves), of which scale and minimum give what an octet of columns has,
// twice.

struct NoScale {
  static constexpr bool kScaled = false;  // so that nobody asks for them
  template <class F, class M>
  CANOPY_DEVICE static BlockScale value(const TileBlock<M>&, uint32_t) {
    return {};
  }
  template <class F, class M>
  CANOPY_DEVICE static HalfScale halves(const TileBlock<M>&, uint32_t) {
    return {};
  }
};

// Instructions on halves take one half of a word twice as well as both: so what is different for some columns needs no
// words of its own.

/// Scale and minimum of a block in the first word, and in the second with the scale of codes four bits higher.
struct ScaleAndMinimum {
  static constexpr bool kScaled = true;
  CANOPY_DEVICE static HalfScale halves_of(uint32_t word) {
    return {{word, gpu::half2_mul(word, kHalfSixteenth | kHalfOne << 16)}};
  }
  /// Of a scale, given twice, and the offset of codes.
  template <class F>
  CANOPY_DEVICE static HalfScale halves_of_scale(uint32_t twice) {
    return halves_of(gpu::half2_mul(twice, kHalfOne | half_offset(F::kOffset) << 16));
  }
  CANOPY_DEVICE static uint32_t scale(const HalfScale& s, uint32_t) { return gpu::lower_twice(s.words[0]); }
  CANOPY_DEVICE static uint32_t high_scale(const HalfScale& s, uint32_t) { return gpu::lower_twice(s.words[1]); }
  CANOPY_DEVICE static uint32_t minimum(const HalfScale& s, uint32_t) { return gpu::upper_twice(s.words[0]); }
};

/// Two scales, two of higher codes and two minima, for columns 0 to 15 and 16 to 31 of a block.
struct TwoScales {
  static constexpr bool kScaled = true;
  CANOPY_DEVICE static HalfScale halves_of(uint32_t scales, uint32_t minima) {
    return {{scales, gpu::half2_mul(scales, half_twice(kHalfSixteenth)), minima}};
  }
  CANOPY_DEVICE static uint32_t scale(const HalfScale& s, uint32_t octet) { return one(s.words[0], octet); }
  CANOPY_DEVICE static uint32_t high_scale(const HalfScale& s, uint32_t octet) { return one(s.words[1], octet); }
  CANOPY_DEVICE static uint32_t minimum(const HalfScale& s, uint32_t octet) { return one(s.words[2], octet); }

 private:
  CANOPY_DEVICE static uint32_t one(uint32_t word, uint32_t octet) {
    return octet < 2 ? gpu::lower_twice(word) : gpu::upper_twice(word);
  }
};

/// A half for each block.
struct HalfOfBlock : ScaleAndMinimum {
  template <class F, class M>
  CANOPY_DEVICE static uint16_t bits(const TileBlock<M>& t) {
    return t.half(t.step + F::kStepScalesAt + t.place * 2);
  }
  template <class F, class M>
  CANOPY_DEVICE static BlockScale value(const TileBlock<M>& t, uint32_t) {
    return both(gpu::half_value(bits<F>(t)), 0);
  }
  template <class F, class M>
  CANOPY_DEVICE static HalfScale halves(const TileBlock<M>& t, uint32_t) {
    return halves_of_scale<F>(gpu::lower_twice(bits<F>(t)));
  }
};

/// Scale and minimum as halves for each block, the minimum 1 / kMinimumPart of what it is, as it may be many times the
/// scale.
struct HalvesOfBlock : ScaleAndMinimum {
  template <class F, class M>
  CANOPY_DEVICE static uint32_t bits(const TileBlock<M>& t) {
    return t.word(t.step + F::kStepScalesAt + t.place * 4);
  }
  template <class F, class M>
  CANOPY_DEVICE static BlockScale value(const TileBlock<M>& t, uint32_t) {
    return both(low_half(bits<F>(t)), high_half(bits<F>(t)) * kMinimumPart);
  }
  template <class F, class M>
  CANOPY_DEVICE static HalfScale halves(const TileBlock<M>& t, uint32_t) {
    return halves_of(gpu::half2_mul(bits<F>(t), kHalfOne | kMinimumPart << 16));  // the latter: that many 2^-24
  }
};

/// A byte e for each block: 2^(e - 128).
struct ExponentOfBlock : ScaleAndMinimum {
  template <class F, class M>
  CANOPY_DEVICE static float power(const TileBlock<M>& t) {
    const uint32_t e = t.byte(t.step + F::kStepScalesAt + t.place);
    return gpu::from_bits(e < 2 ? 0x00200000u << e : (e - 1) << 23);
  }
  template <class F, class M>
  CANOPY_DEVICE static BlockScale value(const TileBlock<M>& t, uint32_t) {
    return both(power<F>(t), 0);
  }
  template <class F, class M>
  CANOPY_DEVICE static HalfScale halves(const TileBlock<M>& t, uint32_t) {
    const float scale = power<F>(t);
    return halves_of_scale<F>(gpu::pack_halves(scale, scale));
  }
};

/// Of a tile's row 16 bytes as files have them, but for the sign of the minimum: scale and minimum as halves, then
/// eight pairs of factors of 6 bits. Those of blocks 0 to 3 are the lower bits of bytes 0 to 3 and 4 to 7; the lower 4
/// bits of the others' share bytes 8 to 11, their upper 2 are above those of the first.
struct SixBitFactors : ScaleAndMinimum {
  template <class F, class M>
  CANOPY_DEVICE static BlockScale value(const TileBlock<M>& t, uint32_t parity) {
    const uint32_t at = t.super + t.row() * 16, a = t.byte(at + 4 + t.q()), b = t.byte(at + 8 + t.q()),
                   c = t.byte(at + 12 + t.q());
    const uint32_t factor = parity == 0 ? a & 63u : (c & 15u) | a >> 6 << 4;
    const uint32_t lowest = parity == 0 ? b & 63u : c >> 4 | b >> 6 << 4;
    return both(gpu::half_value(t.half(at)) * number(static_cast<int>(factor)),
                gpu::half_value(t.half(at + 2)) * number(static_cast<int>(lowest)));
  }
  template <class F, class M>
  CANOPY_DEVICE static HalfScale halves(const TileBlock<M>& t, uint32_t parity) {
    const auto unit = t.memory.template read<Unit>(t.super + t.row() * 16);
    // A factor in byte 0, which becomes a number by way of 1024 more; a minimum's in byte 2, which is one, and 2^-24 of
    // what tiles have.
    constexpr uint32_t more = 0x6400u, less = 0xE400u;
    const uint32_t first = gpu::permute(unit.words[1] >> (8 * t.q()), unit.words[2] >> (8 * t.q()), 0x4400);
    uint32_t factors = gpu::and_or(first, 0x003F003Fu, more);
    if (parity != 0) {
      const uint32_t c = unit.words[3] >> (8 * t.q());
      factors = gpu::and_or(gpu::permute(c, c >> 4, 0x4400), 0x000F000Fu, more);
      factors = gpu::and_or(first >> 2, 0x00300030u, factors);
    }
    return halves_of(gpu::half2_mul(gpu::half2_add(factors, less), unit.words[0]));
  }
};

/// Of a tile's row 16 bytes, for each 16 columns a factor of 4 bits and above it a minimum's; behind those scale and
/// minimum as halves, the latter's sign changed.
struct FourBitFactors : TwoScales {
  template <class M>
  CANOPY_DEVICE static uint32_t factors(const TileBlock<M>& t, uint32_t parity) {
    return t.half(t.super + t.row() * 16 + parity * 8 + t.q() * 2);
  }
  template <class M>
  CANOPY_DEVICE static uint32_t scales(const TileBlock<M>& t) {
    return t.word(t.super + kTileRows * 16 + t.row() * 4);
  }
  template <class F, class M>
  CANOPY_DEVICE static BlockScale value(const TileBlock<M>& t, uint32_t parity) {
    const uint32_t f = factors(t, parity), word = scales(t);
    const float d = low_half(word), m = high_half(word);
    return {{d * number(static_cast<int>(f & 15u)), d * number(static_cast<int>(f >> 8 & 15u))},
            {m * number(static_cast<int>(f >> 4 & 15u)), m * number(static_cast<int>(f >> 12 & 15u))}};
  }
  template <class F, class M>
  CANOPY_DEVICE static HalfScale halves(const TileBlock<M>& t, uint32_t parity) {
    const uint32_t pair = gpu::permute(factors(t, parity), 0, 0x4140), word = scales(t);
    const uint32_t numbers = gpu::half2_add(gpu::and_or(pair, 0x000F000Fu, 0x64006400u), half_twice(0xE400u));
    // Four bits higher, as higher codes are.
    const uint32_t minimum = gpu::half2_mul(gpu::upper_twice(word), half_twice(kHalfSixteenth));
    return halves_of(gpu::half2_mul(numbers, gpu::lower_twice(word)),
                     gpu::half2_mul(gpu::and_or(pair, 0x00F000F0u, 0), minimum));
  }
};

/// Of a tile's row a byte of factor + 128 for each 16 columns, or each 32 (EACH), and behind those the scale as a half.
template <uint32_t EACH>
struct ByteFactors : TwoScales {
  static constexpr uint32_t kFactors = 256 / EACH, kOfBlock = 32 / EACH;
  template <class M>
  CANOPY_DEVICE static uint32_t factors(const TileBlock<M>& t, uint32_t parity) {
    const uint32_t at = t.super + t.row() * kFactors + (parity * 4 + t.q()) * kOfBlock;
    return kOfBlock == 2 ? t.half(at) : t.byte(at);
  }
  template <class M>
  CANOPY_DEVICE static uint16_t half(const TileBlock<M>& t) {
    return t.half(t.super + kTileRows * kFactors + t.row() * 2);
  }
  template <class F, class M>
  CANOPY_DEVICE static BlockScale value(const TileBlock<M>& t, uint32_t parity) {
    const uint32_t f = factors(t, parity);
    const float d = gpu::half_value(half(t)), first = d * number(static_cast<int>(f & 255u) - 128);
    return {{first, kOfBlock == 2 ? d * number(static_cast<int>(f >> 8) - 128) : first}, {0, 0}};
  }
  template <class F, class M>
  CANOPY_DEVICE static HalfScale halves(const TileBlock<M>& t, uint32_t parity) {
    const uint32_t pair = gpu::permute(factors(t, parity), 0x64646464u, kOfBlock == 2 ? 0x4140 : 0x4040);
    const uint32_t scales = gpu::half2_mul(gpu::half2_add(pair, half_twice(0xE480u)), gpu::lower_twice(half(t)));
    return halves_of(scales, gpu::half2_mul(scales, half_twice(half_offset(F::kOffset))));
  }
  /// Made again and again: there are too few registers to keep it beside the others.
  CANOPY_DEVICE static uint32_t high_scale(const HalfScale& s, uint32_t octet) {
    return gpu::half2_mul(scale(s, octet), half_twice(kHalfSixteenth));
  }
};

// ---- codes: of a block --------------------------------------------------------------------------------------
// Each kind: code i of a block as a number (value), and columns 8 octet + 4 half ... + 3 as two pairs of halves
// (pairs), scaled. kOffset: what codes in tiles are more than the numbers.

template <class F, class M>
CANOPY_DEVICE uint32_t code_at(const TileBlock<M>& t, uint32_t octet) {
  return t.step + (octet * kTileRows * 4 + t.place) * F::kCodeBytes;
}

struct CodesF32 {
  static constexpr uint32_t kOffset = 0;
  template <class F, class M>
  CANOPY_DEVICE static float value(const TileBlock<M>& t, uint32_t i) {
    return gpu::from_bits(t.word(code_at<F>(t, i / 8) + i % 8 * 4));
  }
  template <class F, class M>
  CANOPY_DEVICE static void pairs(const TileBlock<M>& t, uint32_t octet, uint32_t half, const HalfScale&,
                                  uint32_t (&pairs)[2]) {
    const auto unit = t.memory.template read<Unit>(code_at<F>(t, octet) + 16 * half);
    pairs[0] = gpu::pack_halves(gpu::from_bits(unit.words[0]), gpu::from_bits(unit.words[1]));
    pairs[1] = gpu::pack_halves(gpu::from_bits(unit.words[2]), gpu::from_bits(unit.words[3]));
  }
};

struct CodesF16 {
  static constexpr uint32_t kOffset = 0;
  template <class F, class M>
  CANOPY_DEVICE static float value(const TileBlock<M>& t, uint32_t i) {
    return gpu::half_value(t.half(code_at<F>(t, i / 8) + i % 8 * 2));
  }
  template <class F, class M>
  CANOPY_DEVICE static void pairs(const TileBlock<M>& t, uint32_t octet, uint32_t half, const HalfScale&,
                                  uint32_t (&pairs)[2]) {
    const auto unit = t.memory.template read<Unit>(code_at<F>(t, octet));
    pairs[0] = unit.words[2 * half];
    pairs[1] = unit.words[2 * half + 1];
  }
};

struct CodesBf16 {
  static constexpr uint32_t kOffset = 0;
  template <class F, class M>
  CANOPY_DEVICE static float value(const TileBlock<M>& t, uint32_t i) {
    return gpu::from_bits(static_cast<uint32_t>(t.half(code_at<F>(t, i / 8) + i % 8 * 2)) << 16);
  }
  template <class F, class M>
  CANOPY_DEVICE static void pairs(const TileBlock<M>& t, uint32_t octet, uint32_t half, const HalfScale&,
                                  uint32_t (&pairs)[2]) {
    const auto unit = t.memory.template read<Unit>(code_at<F>(t, octet));
    CANOPY_UNROLL
    for (uint32_t i = 0; i < 2; ++i) {
      const uint32_t word = unit.words[2 * half + i];
      pairs[i] = gpu::pack_halves(gpu::from_bits(word << 16), gpu::from_bits(word & 0xFFFF0000u));
    }
  }
};

/// Four bytes of code + 128 as two pairs, scaled.
template <class F>
CANOPY_DEVICE void byte_pairs(uint32_t bytes, uint32_t octet, const HalfScale& s, uint32_t (&pairs)[2]) {
  const uint32_t scale = F::Scale::scale(s, octet), minimum = F::Scale::minimum(s, octet);
  CANOPY_UNROLL
  for (uint32_t i = 0; i < 2; ++i) {
    pairs[i] = gpu::half2_fma(gpu::permute(bytes, 0, i == 0 ? 0x4140 : 0x4342), scale, minimum);
  }
}

/// Bytes of code + 128.
struct CodesBytes {
  static constexpr uint32_t kOffset = 128;
  template <class F, class M>
  CANOPY_DEVICE static float value(const TileBlock<M>& t, uint32_t i) {
    return number(static_cast<int>(t.byte(code_at<F>(t, i / 8) + i % 8)) - 128);
  }
  template <class F, class M>
  CANOPY_DEVICE static void pairs(const TileBlock<M>& t, uint32_t octet, uint32_t half, const HalfScale& s,
                                  uint32_t (&pairs)[2]) {
    const auto words = t.memory.template read<WordPair>(code_at<F>(t, octet));
    byte_pairs<F>(half == 0 ? words.first : words.second, octet, s, pairs);
  }
};

/// Places in a table of 16 numbers, of 4 bits. Words of the table: their bytes, plus 128.
template <uint32_t T0, uint32_t T1, uint32_t T2, uint32_t T3>
struct CodesTable {
  static constexpr uint32_t kOffset = 128;
  template <class F, class M>
  CANOPY_DEVICE static float value(const TileBlock<M>& t, uint32_t i) {
    const uint32_t place = t.word(code_at<F>(t, i / 8)) >> index_at(i) & 15u;
    const uint32_t word = place < 4 ? T0 : place < 8 ? T1 : place < 12 ? T2 : T3;
    return number(static_cast<int>(word >> (place % 4 * 8) & 255u) - 128);
  }
  template <class F, class M>
  CANOPY_DEVICE static void pairs(const TileBlock<M>& t, uint32_t octet, uint32_t half, const HalfScale& s,
                                  uint32_t (&pairs)[2]) {
    const uint32_t word = t.word(code_at<F>(t, octet));
    // Among eight numbers, and which eight by the fourth bit.
    const uint32_t places = (word & 0x77777777u) >> (16 * half);
    const uint32_t eights = gpu::and_or(word >> 1, 0x44444444u, 0x32103210u) >> (16 * half);
    const uint32_t bytes = gpu::permute(gpu::permute(T0, T1, places), gpu::permute(T2, T3, places), eights);
    byte_pairs<F>(bytes, octet, s, pairs);
  }
};

/// Integers of up to 6 bits less OFFSET: a nibble, then two more bits, then one more, as far as the type has them.
template <uint32_t OFFSET>
struct CodesBits {
  static constexpr uint32_t kOffset = OFFSET;
  template <class F>
  static constexpr uint32_t kLow = F::kCodeBytes > 0 ? 4 : 0;  // bits of the nibble

  template <class F, class M>
  CANOPY_DEVICE static uint32_t twos(const TileBlock<M>& t, uint32_t half) {
    return t.word(t.step + F::kTwosAt + half * 256 + t.place * 4);
  }
  template <class F, class M>
  CANOPY_DEVICE static uint32_t ones(const TileBlock<M>& t) {
    return t.word(t.step + F::kOnesAt + t.place * 4);
  }
  template <class F, class M>
  CANOPY_DEVICE static float value(const TileBlock<M>& t, uint32_t i) {
    uint32_t code = 0, bits = kLow<F>;
    if constexpr (kLow < F >> 0) code = t.word(code_at<F>(t, i / 8)) >> nibble_at(i) & 15u;
    if constexpr (F::kTwos > 0) {
      code |= (twos<F>(t, i / 16) >> two_at(i) & 3u) << bits;
      bits += 2;
    }
    if constexpr (F::kOnes > 0) code |= (ones<F>(t) >> one_at(i) & 1u) << bits;
    return number(static_cast<int>(code) - static_cast<int>(OFFSET));
  }

  /// Of two pairs the codes begin at bit 0 and bit 4 of their halves. Two bits come behind a nibble or take its place,
  /// one bit behind what there is. Six bits from bit 4 on end where a half's exponent begins.
  template <class F, class M>
  CANOPY_DEVICE static void pairs(const TileBlock<M>& t, uint32_t octet, uint32_t half, const HalfScale& s,
                                  uint32_t (&pairs)[2]) {
    constexpr uint32_t two_first = kLow<F>, one_first = two_first + F::kTwos * 2;  // bits of a code
    const uint32_t c = octet * 2 + half;
    uint32_t nibbles = 0, two = 0, one = 0;
    if constexpr (kLow < F >> 0) nibbles = t.word(code_at<F>(t, octet)) >> (half * 8);
    if constexpr (F::kTwos > 0) {
      two = gpu::rotate_right(twos<F>(t, octet / 2), two_rotation(c % 4) + 4 - two_first);
    }
    if constexpr (F::kOnes > 0) one = gpu::rotate_right(ones<F>(t), one_rotation(c) + 4 - one_first);
    const uint32_t scale = F::Scale::scale(s, octet), high_scale = F::Scale::high_scale(s, octet);
    const uint32_t minimum = F::Scale::minimum(s, octet);
    CANOPY_UNROLL
    for (uint32_t i = 0; i < 2; ++i) {
      uint32_t word = 0;
      if constexpr (kLow < F >> 0) word = gpu::and_or(nibbles, half_twice(15u << (4 * i)), word);
      if constexpr (F::kTwos > 0) word = gpu::and_or(two, half_twice(3u << (two_first + 4 * i)), word);
      if constexpr (F::kOnes > 0) word = gpu::and_or(one, half_twice(1u << (one_first + 4 * i)), word);
      pairs[i] = gpu::half2_fma(word, i == 0 ? scale : high_scale, minimum);
    }
  }
};

/// A type of weights.
template <class Codes, class Scales, const TileShape& SHAPE>
struct Format {
  // Device code has no use of the shape itself, only of numbers.
  static constexpr uint32_t kCodeBytes = SHAPE.code_bytes, kTwos = SHAPE.twos, kOnes = SHAPE.ones;
  static constexpr uint32_t kTwosAt = SHAPE.twos_at(), kOnesAt = SHAPE.ones_at(),
                            kStepScalesAt = SHAPE.step_scales_at();
  static constexpr uint32_t kStepBytes = SHAPE.step_bytes(), kSuperBytes = SHAPE.super_bytes(), kBytes = SHAPE.bytes();
  using Scale = Scales;
  static constexpr bool kScaled = Scales::kScaled;
  static constexpr uint32_t kOffset = Codes::kOffset;

  template <class M>
  CANOPY_DEVICE static HalfScale half_scale(const TileBlock<M>& t, uint32_t parity) {
    return Scales::template halves<Format>(t, parity);
  }
  template <class M>
  CANOPY_DEVICE static void pairs(const TileBlock<M>& t, uint32_t octet, uint32_t half, const HalfScale& s,
                                  uint32_t (&pairs)[2]) {
    Codes::template pairs<Format>(t, octet, half, s, pairs);
  }
  template <class M>
  CANOPY_DEVICE static BlockScale scale(const TileBlock<M>& t, uint32_t parity) {
    return Scales::template value<Format>(t, parity);
  }
  /// In tiles' numbers, too.
  template <class M>
  CANOPY_DEVICE static float element(const TileBlock<M>& t, uint32_t i, const BlockScale& s) {
    const float code = Codes::template value<Format>(t, i);
    const float scale = i < 16 ? s.scale[0] : s.scale[1], minimum = i < 16 ? s.minimum[0] : s.minimum[1];
    return kScaled ? fmaf(scale, code, minimum) : code;
  }
};

using FormatF32 = Format<CodesF32, NoScale, kTileF32>;
using FormatF16 = Format<CodesF16, NoScale, kTileF16>;
using FormatBf16 = Format<CodesBf16, NoScale, kTileF16>;
using FormatQ80 = Format<CodesBytes, HalfOfBlock, kTileQ80>;
using FormatQ40 = Format<CodesBits<8>, HalfOfBlock, kTileQ40>;
using FormatQ41 = Format<CodesBits<0>, HalvesOfBlock, kTileQ41>;
using FormatQ50 = Format<CodesBits<16>, HalfOfBlock, kTileQ50>;
using FormatQ51 = Format<CodesBits<0>, HalvesOfBlock, kTileQ51>;
using FormatQ2K = Format<CodesBits<0>, FourBitFactors, kTileQ2K>;
using FormatQ3K = Format<CodesBits<4>, ByteFactors<16>, kTileQ3K>;
using FormatQ4K = Format<CodesBits<0>, SixBitFactors, kTileQ4K>;
using FormatQ5K = Format<CodesBits<0>, SixBitFactors, kTileQ5K>;
using FormatQ6K = Format<CodesBits<32>, ByteFactors<16>, kTileQ6K>;
/// -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113
using CodesIq4 = CodesTable<0x3F2D1801u, 0x766A5D4Fu, 0xA6998D81u, 0xF1D9C5B5u>;
using FormatIq4Nl = Format<CodesIq4, HalfOfBlock, kTileQ40>;
using FormatIq4Xs = Format<CodesIq4, ByteFactors<32>, kTileIq4Xs>;
/// Twice the numbers 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives
using FormatMxfp4 = Format<CodesTable<0x83828180u, 0x8C888684u, 0x7D7E7F80u, 0x74787A7Cu>, ExponentOfBlock, kTileMxfp4>;

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
