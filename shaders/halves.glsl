// A block of 32 columns of a row as pairs of halves, for matrix cores: scale * code + minimum in the arithmetic of halves
// where the codes allow it. Behind block.glsl.
//
// The columns of a block stand in the order in which they are cheapest to decode; activations are staged in the same
// one (interleaved_quads), so that a sum has the same products. Codes become halves by their bits: 0x6400 | code is
// 1024 + code.

#if WEIGHT >= 4
#define DECODES_PAIRS 1
#else
#define DECODES_PAIRS 0
#endif

f16vec2 half_pair(uint bits) { return unpackFloat2x16(bits); }

#if DECODES_PAIRS
// Codes 2p and 2p + 1 of the block in the low bits of the two halves of a word; four bits higher where high_nibbles(p),
// which saves the shift of every other one.
#if WEIGHT == 4 || MAIN == 4
bool high_nibbles(const uint p) { return p % 2u == 1u; }
#else
bool high_nibbles(const uint p) { return false; }
#endif

uint code_pair(RawBlock raw, const uint p) {
#if WEIGHT == 4
  return (raw.units[0][p / 4u] >> (8u * (p % 4u / 2u))) & (high_nibbles(p) ? 0x00F000F0u : 0x000F000Fu);
#else
#if MAIN == 4
  const uint place = high_nibbles(p) ? 8u : 4u;  // of the upper bits
  uint codes = (raw.bits.main_[p / 4u] >> (8u * (p % 4u / 2u))) & (high_nibbles(p) ? 0x00F000F0u : 0x000F000Fu);
#else
  uint codes = (raw.bits.main_[p / 8u] >> (2u * (p % 8u))) & 0x00030003u;
#endif
#if HIGH == 1 && MAIN == 4
  codes |= ((raw.bits.high[0] >> p) & 0x00010001u) << place;
#elif HIGH == 1
  uint bits = raw.bits.high[0] >> (16u * (p / 8u) + p % 8u);
  codes |= (bits & 1u) << 2 | (bits & 0x100u) << 10;
#elif HIGH == 2
  uint bits = p < 8u ? (raw.bits.high[0] & 0xFFFFu) | raw.bits.high[1] << 16
                     : raw.bits.high[0] >> 16 | (raw.bits.high[1] & 0xFFFF0000u);
  codes |= ((bits >> (2u * (p % 8u))) & 0x00030003u) << place;
#endif
  return codes;
#endif
}
#endif

#if WEIGHT >= 11
#include "tables.glsl"
#endif

void decode_halves(RawBlock raw, uint b, out uint pairs[16]) {
#if WEIGHT >= 11
  float d = block_scale(raw.scale, b, raw.factor, 0u).x;
#if WEIGHT == 13
  precise float eighths = min(8.0 * d, 32768.0);
  f16vec2 scale = half_pair(packHalf2x16(vec2(eighths)));
#else
  f16vec2 scale = half_pair(packHalf2x16(vec2(d)));
#endif
  [[unroll]] for (uint p = 0u; p < 16u; ++p) {
    f16vec2 value = table_pair(raw.bits.main_[p / 4u], p % 4u);
#if WEIGHT != 13
    precise f16vec2 centred = value - float16_t(1536.0);
    value = centred;
#endif
    precise f16vec2 w = value * scale;
    pairs[p] = packFloat2x16(w);
  }
#elif DECODES_PAIRS
#if WEIGHT == 4
  f16vec2 both = half_pair(raw.scale);
  f16vec2 scale[2] = {both.xx, both.xx};
  f16vec2 minimum[2] = {both.yy, both.yy};
#else
  vec2 d[2];
  d[0] = block_scale(raw.scale, b, raw.factor, 0u);
  d[1] = HALVES == 2 ? block_scale(raw.scale, b, raw.factor, 1u) : d[0];
  f16vec2 scale[2], minimum[2];
#if MAIN == 4
  // A pair has a column of each half of the block.
  scale[0] = scale[1] = half_pair(packHalf2x16(vec2(d[0].x, d[1].x)));
  minimum[0] = minimum[1] = half_pair(packHalf2x16(vec2(d[0].y, d[1].y)));
#else
  [[unroll]] for (uint h = 0u; h < 2u; ++h) {
    scale[h] = half_pair(packHalf2x16(d[h].xx));
    minimum[h] = half_pair(packHalf2x16(d[h].yy));
  }
#endif
#endif
#if WEIGHT == 7
  const float16_t zero = float16_t(1028.0);
#elif WEIGHT == 10
  const float16_t zero = float16_t(1056.0);
#else
  const float16_t zero = float16_t(1024.0);
#endif
  [[unroll]] for (uint p = 0u; p < 16u; ++p) {
    // Exact in either form.
    f16vec2 bits = half_pair(code_pair(raw, p) | 0x64006400u);
    precise f16vec2 low = bits - zero;
    precise f16vec2 high = fma(bits, f16vec2(0.0625), f16vec2(float16_t(960.0) - zero));
    f16vec2 code = high_nibbles(p) ? high : low;
    precise f16vec2 w = fma(code, scale[p / 8u], minimum[p / 8u]);
    pairs[p] = packFloat2x16(w);
  }
#elif WEIGHT == 1
  [[unroll]] for (uint p = 0u; p < 16u; ++p) pairs[p] = raw.units[p / 4u][p % 4u];
#elif WEIGHT == 3
  f16vec2 scale = half_pair(packHalf2x16(vec2(uintBitsToFloat(raw.scale))));
  [[unroll]] for (uint p = 0u; p < 16u; ++p) {
    uint word = raw.units[p / 8u][p / 2u % 4u] >> (8u * (p % 2u));
    precise f16vec2 code = half_pair((word & 0x00FF00FFu ^ 0x00800080u) | 0x64006400u) - float16_t(1152.0);
    precise f16vec2 w = code * scale;
    pairs[p] = packFloat2x16(w);
  }
#else
  float w[32];
  decode_block(raw, b, w);
  [[unroll]] for (uint p = 0u; p < 16u; ++p) pairs[p] = packHalf2x16(vec2(w[2u * p], w[2u * p + 1u]));
#endif
}

// The first columns of the two quads that make up unit u (8 columns as they stand) of a block.
uvec2 quads_of_unit(uint u) {
#if WEIGHT == 4 || (DECODES_PAIRS && MAIN == 4)
  return uvec2(4u * u, 16u + 4u * u);
#elif DECODES_PAIRS
  return uvec2(16u * (u / 2u) + 4u * (u % 2u), 16u * (u / 2u) + 4u * (u % 2u) + 8u);
#else
  return uvec2(8u * u, 8u * u + 4u);
#endif
}

// The range of halves; what is beyond would become infinite.
uint to_halves(float a, float b) { return packHalf2x16(clamp(vec2(a, b), -65504.0, 65504.0)); }

// The unit made of the quads that begin there, in the order of the weights.
uvec4 unit_of_quads(vec4 a, vec4 b) {
#if DECODES_PAIRS
  return uvec4(to_halves(a.x, b.x), to_halves(a.y, b.y), to_halves(a.z, b.z), to_halves(a.w, b.w));
#elif WEIGHT == 3
  return uvec4(to_halves(a.x, a.z), to_halves(a.y, a.w), to_halves(b.x, b.z), to_halves(b.y, b.w));
#else
  return uvec4(to_halves(a.x, a.y), to_halves(a.z, a.w), to_halves(b.x, b.y), to_halves(b.z, b.w));
#endif
}
