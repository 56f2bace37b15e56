// A block of 32 columns of a row as integers of 8 bits, four to a word, for matrix cores; and the activations of a block in
// the order of the weights' codes. Behind block.glsl.
//
// The order is the one that is cheapest to decode, as sums of integers are exact in any. Where a block has two scales,
// words 0 ... 3 have the codes of its first half.
//
// SCALES: of a block. MINIMA: whether a minimum goes with each.
// EXCHANGE: whether an eight of activations has bytes of two neighbours' words.

#if WEIGHT == 3
#define SCALES 1
#define MINIMA 0
#elif WEIGHT == 4
#define SCALES 1
#define MINIMA 1
#else
#define SCALES HALVES
#define MINIMA MINIMUM
#endif
#define EXCHANGE (WEIGHT == 5 || WEIGHT == 6 || WEIGHT == 7 || WEIGHT == 9 || WEIGHT == 10)

#if WEIGHT >= 11
#include "tables.glsl"
#endif

// By so many bits to the left, or to the right where they are fewer than none.
uint shifted(uint word, const int bits) { return bits < 0 ? word >> -bits : word << bits; }

// The codes less `zero`, where each is below 128.
uint less(uint codes, const uint zero) { return ((codes | 0x80808080u) - zero * 0x01010101u) ^ 0x80808080u; }

void decode_codes(RawBlock raw, out uint w[8]) {
#if WEIGHT == 3
  [[unroll]] for (uint j = 0u; j < 8u; ++j) w[j] = raw.units[j / 4u][j % 4u];
#elif WEIGHT == 4 || WEIGHT == 8
  // Word 2 j: columns 4 j and 4 j + 2 of both halves of the block; word 2 j + 1: those behind them.
  [[unroll]] for (uint j = 0u; j < 4u; ++j) {
#if WEIGHT == 4
    uint word = raw.units[0][j];
#else
    uint word = raw.bits.main_[j];
#endif
    w[2u * j] = word & 0x0F0F0F0Fu;
    w[2u * j + 1u] = (word >> 4) & 0x0F0F0F0Fu;
  }
#elif WEIGHT >= 11
  [[unroll]] for (uint j = 0u; j < 4u; ++j) {
    uint values[4];  // in the lower bytes of their halves
    [[unroll]] for (uint i = 0u; i < 4u; ++i) {
      f16vec2 value = table_pair(raw.bits.main_[j], i);
#if WEIGHT == 13
      precise f16vec2 centred = fma(value, f16vec2(8.0), f16vec2(1536.0));
      value = centred;
#endif
      values[i] = packFloat2x16(value) & 0x00FF00FFu;
    }
    w[2u * j] = values[0] | values[2] << 8;
    w[2u * j + 1u] = values[1] | values[3] << 8;
  }
#elif WEIGHT == 5 || WEIGHT == 9
  // Word j: columns j, j + 8, j + 16 and j + 24.
  [[unroll]] for (uint j = 0u; j < 8u; ++j) {
    const int i = int(j % 4u);
    w[j] = (shifted(raw.bits.main_[j / 4u], -4 * i) & 0x000F000Fu) |
           (shifted(raw.bits.main_[j / 4u + 2u], 8 - 4 * i) & 0x0F000F00u) |
           (shifted(raw.bits.high[0], 4 - int(j)) & 0x10101010u);
  }
#else
  // Word 4 h + i: columns i, i + 4, i + 8 and i + 12 of half h.
  [[unroll]] for (uint h = 0u; h < 2u; ++h) {
#if WEIGHT == 7
    uint bits = raw.bits.high[0] >> (16u * h);
    bits = (bits & 0xFFu) | (bits & 0xFF00u) << 8;
    bits = (bits | bits << 4) & 0x0F0F0F0Fu;
#elif WEIGHT == 10
    uint a = h == 0u ? (raw.bits.main_[0] & 0xFFFFu) | raw.bits.main_[2] << 16
                     : raw.bits.main_[0] >> 16 | (raw.bits.main_[2] & 0xFFFF0000u);
    uint b = h == 0u ? (raw.bits.main_[1] & 0xFFFFu) | raw.bits.main_[3] << 16
                     : raw.bits.main_[1] >> 16 | (raw.bits.main_[3] & 0xFFFF0000u);
#endif
    [[unroll]] for (uint j = 0u; j < 4u; ++j) {
      const int i = int(j);
#if WEIGHT == 6
      w[4u * h + j] = shifted(raw.bits.main_[h], -2 * i) & 0x03030303u;
#elif WEIGHT == 7
      uint code = (shifted(raw.bits.main_[h], -2 * i) & 0x03030303u) | (shifted(bits, 2 - i) & 0x04040404u);
      w[4u * h + j] = less(code, 4u);
#else
      uint code = (shifted(a, -4 * i) & 0x000F000Fu) | (shifted(b, 8 - 4 * i) & 0x0F000F00u) |
                  (shifted(raw.bits.high[h], 4 - 2 * i) & 0x30303030u);
      w[4u * h + j] = less(code, 32u);
#endif
    }
  }
#endif
}

// What codes of half h are multiplied by, and its minimum; b, the block.
vec2 scale_of_codes(RawBlock raw, uint b, uint h) {
#if WEIGHT == 3
  return vec2(uintBitsToFloat(raw.scale), 0.0);
#elif WEIGHT == 4
  return unpackHalf2x16(raw.scale);
#else
  return block_scale(raw.scale, b, raw.factor, h);
#endif
}

// The two quads of columns of a block that make up eight u of its activations, which become words 2 u and 2 u + 1.
uvec2 quads_of_eight(uint u) {
#if WEIGHT == 5 || WEIGHT == 9
  return uvec2(4u * (u % 2u) + u / 2u, 4u * (u % 2u) + u / 2u + 2u);
#elif WEIGHT == 3 || EXCHANGE
  return uvec2(2u * u, 2u * u + 1u);
#else
  return uvec2(u, u + 4u);
#endif
}

uint four_bytes(uint a, uint b, uint c, uint d) { return a | b << 8 | c << 16 | d << 24; }

// Words 2 u and 2 u + 1 of a block whose eights are in four invocations side by side; a, b: this one's quads as bytes.
uvec2 words_of_eight(uvec4 a, uvec4 b, uint u) {
#if WEIGHT == 3
  return uvec2(four_bytes(a.x, a.y, a.z, a.w), four_bytes(b.x, b.y, b.z, b.w));
#elif EXCHANGE
  // Elements of the quads that stand in the same place make up half a word; those of the neighbour's quads the other.
  bool odd = u % 2u == 1u;
  uint first = four_bytes(a.x, b.x, a.y, b.y), last = four_bytes(a.z, b.z, a.w, b.w);
  uint kept = odd ? last : first;
  uint got = subgroupShuffleXor(odd ? first : last, 1u);
  uint low = odd ? got : kept, high = odd ? kept : got;
  return uvec2((low & 0xFFFFu) | high << 16, low >> 16 | (high & 0xFFFF0000u));
#else
  return uvec2(four_bytes(a.x, a.z, b.x, b.z), four_bytes(a.y, a.w, b.y, b.w));
#endif
}
