// The values that codes of four bits stand for in IQ4 and MXFP4, in the arithmetic of halves, which has all of them exactly.
// Behind words.glsl; `word` is one of the block's. Pair i has the codes in bits 4 i of its two halves.

#if WEIGHT == 11 || WEIGHT == 12
// 1536 + value. The sixteen values are nearly a polynomial of their codes: one of degree four, computed in halves, is off
// by less than 0.44, and the last addition rounds to whole numbers, as the halves from 1024 to 2048 are. The constants are
// right for all codes, whether fma() rounds once or twice.
f16vec2 table_pair(uint word, const uint i) {
  uint bits = i == 0u ? word << 4 : word >> (4u * i - 4u);
  precise f16vec2 code = unpackFloat2x16((bits & 0x00F000F0u) | 0x54005400u);  // 64 + code
  precise f16vec2 x = fma(code, f16vec2(0.44970703125), f16vec2(-33.0));
  precise f16vec2 square = fma(x, x, f16vec2(26.375));
  precise f16vec2 slope = fma(square, f16vec2(0.033538818359375), x);
  precise f16vec2 value = fma(square, slope, f16vec2(1530.0));
  return value;
}
#elif WEIGHT == 13
// An eighth of twice the value. The bits of exponent and mantissa are those of the half u = 2^(exponent - 3) *
// (1 + mantissa / 2), which is right but for the exponent 0, where the value has no leading 1: 2 u - 1/4.
f16vec2 table_pair(uint word, const uint i) {
  const uint at = 4u * i;
  uint bits = at < 9u ? word << (9u - at) : word >> (at - 9u);
  precise f16vec2 u = unpackFloat2x16((bits & 0x0E000E00u) | 0x30003000u);
  precise f16vec2 magnitude = min(u, fma(u, f16vec2(2.0), f16vec2(-0.25)));
  return unpackFloat2x16(packFloat2x16(magnitude) | ((word << (12u - at)) & 0x80008000u));
}
#endif
