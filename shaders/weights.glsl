// Weights as the device keeps them (engine/vulkan/weight_layout.h): units of 16 bytes, unit u of row r at index
// u * stored_rows + r, so that neighbouring invocations read neighbouring units; and, for block types, one word of scale
// per block of 32 at index block * stored_rows + r.
//
// WEIGHT: 0 f32, 1 f16, 2 bf16, 3 q8_0, 4 q4_1.   TEXEL: fetch through a texel buffer instead of a storage buffer
// (software devices gather texels far faster; kernels.md section 6 has the figures).

#if WEIGHT == 0
#define PER_WORD 1u
#elif WEIGHT == 1 || WEIGHT == 2
#define PER_WORD 2u
#elif WEIGHT == 3
#define PER_WORD 4u
#else
#define PER_WORD 8u
#endif
#define PER_UNIT (4u * PER_WORD)
#define UNITS_PER_BLOCK (32u / PER_UNIT)
#define HAS_SCALES (WEIGHT >= 3)

#if TEXEL
layout(set = 0, binding = 0) uniform usamplerBuffer weight_units;
layout(set = 0, binding = 1) uniform usamplerBuffer weight_scales;
uvec4 fetch_unit(uint i) { return texelFetch(weight_units, int(i)); }
uint fetch_scale(uint i) { return texelFetch(weight_scales, int(i)).x; }
#else
layout(set = 0, binding = 0) readonly buffer WeightUnits { uvec4 weight_units[]; };
layout(set = 0, binding = 1) readonly buffer WeightScales { uint weight_scales[]; };
uvec4 fetch_unit(uint i) { return weight_units[i]; }
uint fetch_scale(uint i) { return weight_scales[i]; }
#endif

// Element i (below PER_WORD) of a word, before its block's scale.
float decode(uint word, uint i) {
#if WEIGHT == 0
  return uintBitsToFloat(word);
#elif WEIGHT == 1
  return i == 0u ? unpackHalf2x16(word).x : unpackHalf2x16(word).y;
#elif WEIGHT == 2
  return uintBitsToFloat(i == 0u ? word << 16 : word & 0xFFFF0000u);
#elif WEIGHT == 3
  return float(int(word << (24u - 8u * i)) >> 24);
#else
  return float((word >> (4u * i)) & 15u);
#endif
}
