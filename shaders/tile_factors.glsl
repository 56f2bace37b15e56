// The norm's factors of a tile's columns. Who includes it says which rows of the activations those are (has_column(),
// input_row()).

// The family's shared memory as floats: TILE_COLUMNS * TILE_ROWS at least. It holds the lanes of load_factors(), then
// what the family puts there, and then, where the chunk's sums are not shared, the sum of element (c, r) at
// c * TILE_ROWS + r.
float pooled(uint i);
void put_pooled(uint i, float value);
vec4 pooled_quad(uint i);  // 4 i ... 4 i + 3

const uint FACTOR_LANES = 32u;       // at most TILE_ROWS
// Of the norm, by column. All of shared memory is in units of 16 bytes, so that what follows is aligned to them.
shared vec4 factors[(TILE_COLUMNS + 3u) / 4u];

// factors[c] = 1 / sqrt(mean of squares + eps), or 1 without a norm. The order of the sum is that of its blocks: block b
// goes to lane b mod 32, and lanes are added in order.
void load_factors(uint first_column) {
  for (uint i = gl_LocalInvocationIndex; i < TILE_COLUMNS * FACTOR_LANES; i += INVOCATIONS) {
    precise float sum = 0.0;
    if (norm_eps > 0.0 && has_column(first_column, i / FACTOR_LANES)) {
      uint row = input_row(first_column, i / FACTOR_LANES);
      for (uint b = i % FACTOR_LANES; b < square_blocks; b += FACTOR_LANES) sum = sum + in_squares[row * square_blocks + b];
    }
    put_pooled(i, sum);
  }
  barrier();
  for (uint c = gl_LocalInvocationIndex; c < TILE_COLUMNS; c += INVOCATIONS) {
    precise float sum = 0.0;
    for (uint l = 0u; l < FACTOR_LANES; ++l) sum = sum + pooled(c * FACTOR_LANES + l);
    precise float mean = sum / float(cols);
    precise float shifted = mean + norm_eps;
    factors[c / 4u][c % 4u] = norm_eps > 0.0 ? inversesqrt(shifted) : 1.0;
  }
  barrier();
}

// Elements of column c of the tile, times the norm's factor.
vec4 normed(vec4 x, uint c) {
  precise vec4 y = x * factors[c / 4u][c % 4u];
  return y;
}
