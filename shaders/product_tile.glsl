// What the families of products share behind their TILE_ROWS, TILE_COLUMNS and INVOCATIONS (product.glsl).

// Columns nobody asked for are computed as the last one, and not stored.
bool has_column(uint first_column, uint c) { return first_column + c < width; }
uint input_row(uint first_column, uint c) { return min(first_column + c, width - 1u); }
uint asked_columns(uint first_column) { return min(TILE_COLUMNS, width - first_column); }
#include "tile_factors.glsl"

#if FINISHES_TILES
shared uvec4 is_last;
#endif

// Where the elements of column c of the tile begin, in quads. Rows of activations are padded to whole units of 64
// elements with zeros.
uint input_of(uint first_column, uint c) { return input_row(first_column, c) * in_stride; }

// Row r of the tile, as the weight's blocks have it: rows beyond its bands are computed as the last one, and not stored.
uint weight_row(uint first_row, uint r) { return min(first_row + r, (rows + BAND - 1u) / BAND * BAND - 1u); }

// Whether this workgroup has a tile.
bool find_tile(uint first_column, uint first_row) { return true; }

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
