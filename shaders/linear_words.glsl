// One block of 32 columns of the types kept as words (words.glsl), added to `total`. Included by linear_core.glsl.

BlockBits bits[R];

// Row row's first word at `first`, R rows, block b.
void fetch_bits(uint first, uint b) {
  [[unroll]] for (uint q = 0u; q < R / 4u; ++q) {
    uint at = (first + block_word(b) * BAND) / 4u + q;
    [[unroll]] for (uint j = 0u; j < uint(MAIN); ++j) {
      uvec4 words = fetch_unit(at + j * (BAND / 4u));
      [[unroll]] for (uint r = 0u; r < 4u; ++r) bits[4u * q + r].main_[j] = words[r];
    }
    [[unroll]] for (uint j = 0u; j < uint(HIGH); ++j) {
      uvec4 words = fetch_unit(at + (uint(MAIN) + j) * (BAND / 4u));
      [[unroll]] for (uint r = 0u; r < 4u; ++r) bits[4u * q + r].high[j] = words[r];
    }
  }
}

// The quad at hand of each row times quad q of the block's activations.
void add_word_quad(Activations from, uint q, uint k_end) {
  float w[R][4];
  [[unroll]] for (uint r = 0u; r < R; ++r) {
    [[unroll]] for (uint i = 0u; i < 4u; ++i) w[r][i] = element(bits[r], i);
    turn(bits[r]);
  }
  vec4 x[N];
  load_quad(from, q, k_end, x);
  [[unroll]] for (uint c = 0u; c < N; ++c) {
    [[unroll]] for (uint r = 0u; r < R; ++r) {
      [[unroll]] for (uint i = 0u; i < 4u; ++i) dot_[r][c] = fma(w[r][i], x[c][i], dot_[r][c]);
    }
  }
}

void clear_dots() {
  [[unroll]] for (uint c = 0u; c < N; ++c) {
    [[unroll]] for (uint r = 0u; r < R; ++r) dot_[r][c] = 0.0;
  }
}

// total += scale * dot + minimum * sum of the activations.
void add_scaled_dots(uint first, uint b, uint h) {
  [[unroll]] for (uint q = 0u; q < R / 4u; ++q) {
    uvec4 words = fetch_unit((first + scale_word(b) * BAND) / 4u + q);
#if HAS_FACTOR
    uvec4 factors = fetch_unit((first + factor_word(b) * BAND) / 4u + q);
#else
    uvec4 factors = uvec4(0u);
#endif
    [[unroll]] for (uint r = 0u; r < 4u; ++r) {
      vec2 d = block_scale(words[r], b, factors[r], h);
      [[unroll]] for (uint c = 0u; c < N; ++c) {
        total[4u * q + r][c] = fma(d.x, dot_[4u * q + r][c], total[4u * q + r][c]);
#if MINIMUM
        total[4u * q + r][c] = fma(d.y, half_sum(h, c), total[4u * q + r][c]);
#endif
      }
    }
  }
}

void add_block(uint first, uint b, Activations from, uint k_end) {
  fetch_bits(first, b);
  begin_block(from, k_end);
  [[unroll]] for (uint h = 0u; h < 2u; ++h) {
    if (h == 0u || HALVES == 2) clear_dots();
    if (UNROLL >= 4u) {
      [[unroll]] for (uint q = 0u; q < 4u; ++q) add_word_quad(from, 4u * h + q, k_end);
    } else {
      for (uint q = 0u; q < 4u; ++q) add_word_quad(from, 4u * h + q, k_end);
    }
    if (h == 1u || HALVES == 2) add_scaled_dots(first, b, HALVES == 2 ? h : 0u);
  }
}
