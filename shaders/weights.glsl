// Weights as the device keeps them (engine/vulkan/device_objects.h): bands of 64 rows, in each unit u of row r at index
// u * 64 + r, so that neighbouring invocations read neighbouring units of 16 bytes and a workgroup reads forward; and,
// for block types, one word of scale per block of 32 at index block * 64 + r.
//
// WEIGHT: 0 f32, 1 f16, 2 bf16, 3 q8_0, 4 q4_1; in words instead of units (IS_WORDS) 5 q5_1, 6 q2_k, 7 q3_k, 8 q4_k,
// 9 q5_k, 10 q6_k, 11 iq4_nl, 12 iq4_xs, 13 mxfp4.

// A unit holds QUADS_PER_UNIT quads of four consecutive columns. Quad q of a q4_1 unit is in word q mod 4, in its low
// half for q < 4 and its high half otherwise; q8_0 has a quad to a word, f16 and bf16 one to two words, f32 one to four.

#if WEIGHT == 0
#define QUADS_PER_UNIT 1u
#elif WEIGHT == 1 || WEIGHT == 2
#define QUADS_PER_UNIT 2u
#elif WEIGHT == 3
#define QUADS_PER_UNIT 4u
#else
#define QUADS_PER_UNIT 8u
#endif
#define PER_UNIT (4u * QUADS_PER_UNIT)
#define UNITS_PER_BLOCK (32u / PER_UNIT)
#define HAS_SCALES (WEIGHT == 3 || WEIGHT == 4)
#define IS_WORDS (WEIGHT >= 5)

#if IS_WORDS
layout(set = 0, binding = 0) readonly buffer WeightUnits { uint weight_words[]; };
uint fetch_word(uint i) { return weight_words[i]; }
#else
layout(set = 0, binding = 0) readonly buffer WeightUnits { uvec4 weight_units[]; };
uvec4 fetch_unit(uint i) { return weight_units[i]; }
#endif
layout(set = 0, binding = 1) readonly buffer WeightScales { uint weight_scales[]; };
uint fetch_scale(uint i) { return weight_scales[i]; }

const uint BAND = 64u;

uint blocks_of(uint cols) { return (cols + 31u) / 32u; }

// Index of the first unit of a row; the next are BAND apart.
uint units_of(uint row, uint cols) { return (row / BAND) * BAND * blocks_of(cols) * UNITS_PER_BLOCK + row % BAND; }

// Index of a row's first word of scale; the next are BAND apart.
uint scales_of(uint row, uint cols) { return (row / BAND) * BAND * blocks_of(cols) + row % BAND; }

#if IS_WORDS
// Blocks of 32 columns as words: per block MAIN words of codes and HIGH words of their upper bits; per group of GROUP_BLOCKS
// blocks SCALE_WORDS words with 16 bits of scale for each block, two to a word (q5_1: a word for each), and, where
// HAS_FACTOR, one both halves of which are a factor of all. In a band of 64 rows, word j of row r is at index j * 64 + r.
//
// HALVES: scales a block has; MINIMUM: whether a minimum goes with each.

#if WEIGHT == 5
#define MAIN 4
#define HIGH 1
#define HALVES 1
#define MINIMUM 1
#elif WEIGHT == 6
#define MAIN 2
#define HIGH 0
#define HALVES 2
#define MINIMUM 1
#elif WEIGHT == 7
#define MAIN 2
#define HIGH 1
#define HALVES 2
#define MINIMUM 0
#elif WEIGHT == 8
#define MAIN 4
#define HIGH 0
#define HALVES 1
#define MINIMUM 1
#elif WEIGHT == 9
#define MAIN 4
#define HIGH 1
#define HALVES 1
#define MINIMUM 1
#elif WEIGHT == 10
#define MAIN 4
#define HIGH 2
#define HALVES 2
#define MINIMUM 0
#else
#define MAIN 4
#define HIGH 0
#define HALVES 1
#define MINIMUM 0
#endif

#if WEIGHT == 5
#define GROUP_BLOCKS 1u
#define SCALE_WORDS 1u
#define HAS_FACTOR 0
#elif WEIGHT == 11 || WEIGHT == 13
#define GROUP_BLOCKS 2u
#define SCALE_WORDS 1u
#define HAS_FACTOR 0
#else
#define GROUP_BLOCKS 8u
#define SCALE_WORDS 4u
#define HAS_FACTOR 1
#endif

#if HIGH == 0
#define HIGH_KEPT 1
#else
#define HIGH_KEPT HIGH
#endif

const uint BLOCK_WORDS = uint(MAIN + HIGH);
const uint GROUP_WORDS = GROUP_BLOCKS * BLOCK_WORDS + SCALE_WORDS + uint(HAS_FACTOR);

// Index of a row's first word; the next are BAND apart.
uint words_of(uint row, uint cols) {
  uint groups = (blocks_of(cols) + GROUP_BLOCKS - 1u) / GROUP_BLOCKS;
  return (row / BAND) * BAND * groups * GROUP_WORDS + row % BAND;
}

// Word offsets (times BAND) from a row's first: of a block, of the word with its scale, of its group's factor.
uint block_word(uint b) { return (b / GROUP_BLOCKS) * GROUP_WORDS + (b % GROUP_BLOCKS) * BLOCK_WORDS; }
uint scale_word(uint b) {
  return (b / GROUP_BLOCKS) * GROUP_WORDS + GROUP_BLOCKS * BLOCK_WORDS + (b % GROUP_BLOCKS) / 2u;
}
uint factor_word(uint b) { return (b / GROUP_BLOCKS) * GROUP_WORDS + GROUP_BLOCKS * BLOCK_WORDS + SCALE_WORDS; }

// The block of one row, its next quad lowest: four bits a code in main (two where MAIN is 2), and as many upper bits.
struct BlockBits {
  uint main_[MAIN];
  uint high[HIGH_KEPT];
};

// Turns to the next quad: words of nibbles hold a quad in each half.
void turn(inout BlockBits b) {
#if MAIN == 4
  uint first = b.main_[0];
  b.main_[0] = b.main_[1];
  b.main_[1] = b.main_[2];
  b.main_[2] = b.main_[3];
  b.main_[3] = first >> 16;
#else
  b.main_[0] = (b.main_[0] >> 8) | (b.main_[1] << 24);
  b.main_[1] >>= 8;
#endif
#if HIGH == 1
  b.high[0] >>= 4;
#elif HIGH == 2
  b.high[0] = (b.high[0] >> 8) | (b.high[1] << 24);
  b.high[1] >>= 8;
#endif
}

#if WEIGHT == 11 || WEIGHT == 12
// The sixteen values of IQ4, a byte each.
int table_value(uint code) {
  uint low = (code & 4u) == 0u ? 0xBFAD9881u : 0xF6EADDCFu;
  uint high = (code & 4u) == 0u ? 0x26190D01u : 0x71594535u;
  uint word = (code & 8u) == 0u ? low : high;
  return int(word << (24u - 8u * (code & 3u))) >> 24;
}
#elif WEIGHT == 13
// Twice the value of a number of 1 sign, 2 exponent and 1 mantissa bits. Without branches: SwiftShader takes minutes and
// gigabytes for those of a whole block.
int table_value(uint code) {
  uint exponent = (code >> 1) & 3u;
  uint leading = min(exponent, 1u);  // the exponent 0 has no leading 1
  int magnitude = int((2u * leading + (code & 1u)) << (exponent - leading));
  int sign = int(code >> 3);
  return (magnitude ^ -sign) + sign;
}
#endif

// Element i of the quad at hand, before its scale.
float element(BlockBits b, uint i) {
#if MAIN == 4
  uint code = (b.main_[0] >> (4u * i)) & 15u;
#else
  uint code = (b.main_[0] >> (2u * i)) & 3u;
#endif
#if HIGH == 1
  code |= ((b.high[0] >> i) & 1u) << (MAIN == 4 ? 4u : 2u);
#elif HIGH == 2
  code |= ((b.high[0] >> (2u * i)) & 3u) << 4u;
#endif
#if WEIGHT >= 11
  return float(table_value(code));
#elif WEIGHT == 7
  return float(int(code) - 4);
#elif WEIGHT == 10
  return float(int(code) - 32);
#else
  return float(int(code));
#endif
}

// Scale and minimum of half h (0 where a block has one): word, the one from scale_word; b, the block; factor, its group's.
vec2 block_scale(uint word, uint b, uint factor, uint h) {
#if WEIGHT == 5
  return unpackHalf2x16(word);
#else
  uint bits = word >> (16u * (b % 2u));
#if WEIGHT == 11
  return vec2(unpackHalf2x16(bits).x, 0.0);
#elif WEIGHT == 13
  uint exponent = bits & 255u;  // of twice the value: 2^(exponent - 128)
  return vec2(uintBitsToFloat(exponent < 2u ? 0x00200000u << exponent : (exponent - 1u) << 23), 0.0);
#else
  vec2 d = unpackHalf2x16(factor);
#if WEIGHT == 12
  precise float scale = d.x * float(int(bits & 63u) - 32);
  return vec2(scale, 0.0);
#elif WEIGHT == 7
  precise float scale = d.x * float(int((bits >> (8u * h)) & 63u) - 32);
  return vec2(scale, 0.0);
#elif WEIGHT == 10
  precise float scale = d.x * float(int(bits << (24u - 8u * h)) >> 24);
  return vec2(scale, 0.0);
#elif WEIGHT == 6
  precise vec2 both = vec2(d.x, -d.y) * vec2(float(int((bits >> (8u * h)) & 15u)), float(int((bits >> (8u * h + 4u)) & 15u)));
  return both;
#else
  precise vec2 both = vec2(d.x, -d.y) * vec2(float(int(bits & 63u)), float(int((bits >> 8) & 63u)));
  return both;
#endif
#endif
#endif
}

#else
// Element i (below 4) of quad q of a unit, before its block's scale.
float decode(uvec4 unit, uint q, uint i) {
#if WEIGHT == 0
  return uintBitsToFloat(unit[i]);
#elif WEIGHT == 1
  uint word = unit[2u * q + i / 2u];
  return i % 2u == 0u ? unpackHalf2x16(word).x : unpackHalf2x16(word).y;
#elif WEIGHT == 2
  uint word = unit[2u * q + i / 2u];
  return uintBitsToFloat(i % 2u == 0u ? word << 16 : word & 0xFFFF0000u);
#elif WEIGHT == 3
  return float(int(unit[q] << (24u - 8u * i)) >> 24);
#else
  return float((unit[q % 4u] >> (16u * (q / 4u) + 4u * i)) & 15u);
#endif
}
#endif

// One block of 32 columns of one row: fetched as it is stored, and decoded to f32 as scale * code + minimum. Two steps, so
// that the next block can be on its way meanwhile.

#if IS_WORDS
struct RawBlock {
  BlockBits bits;
  uint scale;
  uint factor;
};

// Where a row's blocks begin, for fetch_block().
uvec2 blocks_begin(uint row, uint cols) { return uvec2(words_of(row, cols), 0u); }

RawBlock fetch_block(uvec2 begin, uint b) {
  uint first = begin.x;
  RawBlock raw;
  [[unroll]] for (uint j = 0u; j < uint(MAIN); ++j) raw.bits.main_[j] = fetch_word(first + (block_word(b) + j) * BAND);
  [[unroll]] for (uint j = 0u; j < uint(HIGH); ++j) {
    raw.bits.high[j] = fetch_word(first + (block_word(b) + uint(MAIN) + j) * BAND);
  }
  raw.scale = fetch_word(first + scale_word(b) * BAND);
#if HAS_FACTOR
  raw.factor = fetch_word(first + factor_word(b) * BAND);
#else
  raw.factor = 0u;
#endif
  return raw;
}

void decode_block(RawBlock raw, uint b, out float w[32]) {
  [[unroll]] for (uint h = 0u; h < 2u; ++h) {
    vec2 d = block_scale(raw.scale, b, raw.factor, HALVES == 2 ? h : 0u);
    [[unroll]] for (uint q = 0u; q < 4u; ++q) {
      [[unroll]] for (uint i = 0u; i < 4u; ++i) w[16u * h + 4u * q + i] = fma(d.x, element(raw.bits, i), d.y);
      turn(raw.bits);
    }
  }
}

#else
struct RawBlock {
  uvec4 units[UNITS_PER_BLOCK];
  uint scale;
};

uvec2 blocks_begin(uint row, uint cols) { return uvec2(units_of(row, cols), scales_of(row, cols)); }

RawBlock fetch_block(uvec2 begin, uint b) {
  uint first = begin.x + b * UNITS_PER_BLOCK * BAND;
  RawBlock raw;
  [[unroll]] for (uint u = 0u; u < UNITS_PER_BLOCK; ++u) raw.units[u] = fetch_unit(first + u * BAND);
#if HAS_SCALES
  raw.scale = fetch_scale(begin.y + b * BAND);
#else
  raw.scale = 0u;
#endif
  return raw;
}

void decode_block(RawBlock raw, uint b, out float w[32]) {
  [[unroll]] for (uint u = 0u; u < UNITS_PER_BLOCK; ++u) {
    [[unroll]] for (uint q = 0u; q < QUADS_PER_UNIT; ++q) {
      [[unroll]] for (uint i = 0u; i < 4u; ++i) {
        float code = decode(raw.units[u], q, i);
#if WEIGHT == 4
        vec2 d = unpackHalf2x16(raw.scale);
        w[u * PER_UNIT + 4u * q + i] = fma(d.x, code, d.y);
#elif WEIGHT == 3
        precise float scaled = uintBitsToFloat(raw.scale) * code;
        w[u * PER_UNIT + 4u * q + i] = scaled;
#else
        w[u * PER_UNIT + 4u * q + i] = code;
#endif
      }
    }
  }
}
#endif
