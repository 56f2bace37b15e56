// One block of 32 columns of one row of a weight, decoded: scale * code + minimum, in f32. Behind weights.glsl with
// TEXEL 0. Weights from `cols` on, to the end of the block, are 0.

void decode_block(uint row, uint b, uint cols, out float w[32]) {
#if IS_WORDS
  uint first = words_of(row, cols);
  BlockBits bits;
  [[unroll]] for (uint j = 0u; j < uint(MAIN); ++j) bits.main_[j] = fetch_word(first + (block_word(b) + j) * BAND);
  [[unroll]] for (uint j = 0u; j < uint(HIGH); ++j) {
    bits.high[j] = fetch_word(first + (block_word(b) + uint(MAIN) + j) * BAND);
  }
  uint scale = fetch_word(first + scale_word(b) * BAND);
#if HAS_FACTOR
  uint factor = fetch_word(first + factor_word(b) * BAND);
#else
  uint factor = 0u;
#endif
  [[unroll]] for (uint h = 0u; h < 2u; ++h) {
    vec2 d = block_scale(scale, b, factor, HALVES == 2 ? h : 0u);
    [[unroll]] for (uint q = 0u; q < 4u; ++q) {
      [[unroll]] for (uint i = 0u; i < 4u; ++i) w[16u * h + 4u * q + i] = fma(d.x, element(bits, i), d.y);
      turn(bits);
    }
  }
#else
  uint first = units_of(row, cols) + b * UNITS_PER_BLOCK * BAND;
#if HAS_SCALES
  uint scale = fetch_scale(scales_of(row, cols) + b * BAND);
#endif
  [[unroll]] for (uint u = 0u; u < UNITS_PER_BLOCK; ++u) {
    uvec4 unit = fetch_unit(first + u * BAND);
    [[unroll]] for (uint q = 0u; q < QUADS_PER_UNIT; ++q) {
      [[unroll]] for (uint i = 0u; i < 4u; ++i) {
        float code = decode(unit, q, i);
#if WEIGHT == 4
        vec2 d = unpackHalf2x16(scale);
        w[u * PER_UNIT + 4u * q + i] = fma(d.x, code, d.y);
#elif WEIGHT == 3
        precise float scaled = uintBitsToFloat(scale) * code;
        w[u * PER_UNIT + 4u * q + i] = scaled;
#else
        w[u * PER_UNIT + 4u * q + i] = code;
#endif
      }
    }
  }
#endif
}
