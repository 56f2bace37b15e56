// What the families of products share behind their TILE_ROWS, TILE_COLUMNS and INVOCATIONS (product.glsl).

// The family's shared memory as floats: TILE_COLUMNS * TILE_ROWS at least. It holds the lanes of load_factors(), then
// what the family puts there, and then, where the chunk's sums are not shared, the sum of element (c, r) at
// c * TILE_ROWS + r.
float pooled(uint i);
void put_pooled(uint i, float value);
vec4 pooled_quad(uint i);  // 4 i ... 4 i + 3

const uint FACTOR_LANES = 32u;       // at most TILE_ROWS
// Of the norm, by column. All of shared memory is in units of 16 bytes, so that what follows is aligned to them.
shared vec4 factors[(TILE_COLUMNS + 3u) / 4u];
#if FINISHES_TILES
shared uvec4 is_last;
#endif

// factors[c] = 1 / sqrt(mean of squares + eps), or 1 without a norm. The order of the sum is that of its blocks: block b
// goes to lane b mod 32, and lanes are added in order.
void load_factors(uint first_column) {
  for (uint i = gl_LocalInvocationIndex; i < TILE_COLUMNS * FACTOR_LANES; i += INVOCATIONS) {
    uint column = first_column + i / FACTOR_LANES;
    precise float sum = 0.0;
    if (norm_eps > 0.0 && column < width) {
      for (uint b = i % FACTOR_LANES; b < square_blocks; b += FACTOR_LANES) {
        sum = sum + in_squares[column * square_blocks + b];
      }
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

// Where the elements of column c of the tile begin, in quads. Columns nobody asked for are computed as the last one, and
// not stored. Rows of activations are padded to whole units of 64 elements with zeros.
uint input_of(uint first_column, uint c) { return min(first_column + c, width - 1u) * in_stride; }

// Elements of column c of the tile, times the norm's factor.
vec4 normed(vec4 x, uint c) {
  precise vec4 y = x * factors[c / 4u][c % 4u];
  return y;
}

uint chunks() { return gl_NumWorkGroups.z; }

// Whether the sums of a chunk go to memory, where other workgroups find them.
bool shares_sums() { return FINISHES_TILES == 0 || chunks() > 1u; }

// Where the sums of rows row ... row + 3 of the whole weight lie until all are there; row is a multiple of 4.
uint partial_index(uint chunk, uint column, uint row) {
  return partial_base + (chunk * width + column) * ((total_rows + 3u) / 4u) + row / 4u;
}

// The sums over all chunks of rows row ... row + 3 of the whole weight.
vec4 shared_sum(uint column, uint row) {
  precise vec4 sum = vec4(0.0);
  for (uint z = 0u; z < chunks(); z += 4u) {  // loaded together, so that they are waited for once
    vec4 parts[4];
    [[unroll]] for (uint i = 0u; i < 4u; ++i) parts[i] = partials[partial_index(min(z + i, chunks() - 1u), column, row)];
    [[unroll]] for (uint i = 0u; i < 4u; ++i) {
      if (z + i < chunks()) sum = sum + parts[i];
    }
  }
  return sum;
}

#define DEVICE_BARRIER()                                                                                    \
  controlBarrier(gl_ScopeWorkgroup, gl_ScopeDevice, gl_StorageSemanticsBuffer | gl_StorageSemanticsShared, \
                 gl_SemanticsAcquireRelease)

#if FINISHES_TILES
// The sums over all chunks of elements (c, r) ... (c, r + 3) of the tile; r is a multiple of 4, and (c, r) is one of
// those asked for.
vec4 quad_sum(uint first_column, uint first_row, uint c, uint r) {
  if (!shares_sums()) return pooled_quad((c * TILE_ROWS + r) / 4u);
  return shared_sum(first_column + c, row_offset + first_row + r);
}

// Behind the writes of a chunk's sums: whether this workgroup is the last of the tile's, which finishes it. The barrier
// before the count makes the group's writes available to the device, the count orders the groups, and the barrier behind
// it makes what the others wrote visible to the whole group.
bool comes_last() {
  if (!shares_sums()) return true;
  uint counter = counter_base + gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
  DEVICE_BARRIER();
  if (gl_LocalInvocationIndex == 0u) is_last.x = atomicAdd(arrived[counter], 1u) + 1u == chunks() ? 1u : 0u;
  DEVICE_BARRIER();
  if (is_last.x == 0u) return false;
  if (gl_LocalInvocationIndex == 0u) arrived[counter] = 0u;
  return true;
}

// The op's: writes the tile's elements. All invocations call it.
void finish_tile(uint first_column, uint first_row);

void begin_tile(uint first_column) {}
void finish(uint first_column, uint first_row) {
  if (comes_last()) finish_tile(first_column, first_row);
}
#else
// The op's, called by all invocations: before the product, and when the chunk's sums are written.
void begin_tile(uint first_column);
void finish(uint first_column, uint first_row);
#endif
