// One block of 32 columns of one row of a weight: fetched as it is stored, and decoded to f32 as scale * code + minimum.
// Two steps, so that the next block can be on its way meanwhile. Behind weights.glsl.

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
