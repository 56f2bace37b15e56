// Weights as the device keeps them (engine/vulkan/device_objects.h): bands of 64 rows, in each unit u of row r at index
// u * 64 + r, so that neighbouring invocations read neighbouring units of 16 bytes and a workgroup reads forward; and,
// for block types, one word of scale per block of 32 at index block * 64 + r.
//
// WEIGHT: 0 f32, 1 f16, 2 bf16, 3 q8_0, 4 q4_1; from 5 on words.glsl.

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
#include "words.glsl"
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
