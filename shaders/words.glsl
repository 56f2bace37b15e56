// Blocks of 32 columns as words (engine/vulkan/device_objects.h): per block MAIN words of codes and HIGH words of their upper
// bits; per group of GROUP blocks 16 bits of scale for each block, two to a word, and DS words both halves of which are a
// factor of all. In a band of 64 rows, word j of row r is at index j * 64 + r.
//
// WEIGHT: 5 q5_1, 6 q2_k, 7 q3_k, 8 q4_k, 9 q5_k, 10 q6_k, 11 iq4_nl, 12 iq4_xs, 13 mxfp4.
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
