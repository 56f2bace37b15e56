// A tile of a product with experts on matrix cores (product_matrix.glsl): the pairs of one expert in the place of columns
// of the pass. A row's sum is that of all columns of the weight, in one chunk.

#extension GL_KHR_memory_scope_semantics : require

#define GROUPED_ID 9
#include "expert_pairs.glsl"

#define chunk_columns cols
#define LEAST_POOL 0u

uint expert, pair_count;  // of the tile

bool has_column(uint first_column, uint c) { return c < pair_count; }
uint input_row(uint first_column, uint c) { return pair(min(c, pair_count - 1u)) / row_pairs; }
uint asked_columns(uint first_column) { return pair_count; }
#include "tile_factors.glsl"

uint input_of(uint first_column, uint c) { return activation_row(input_row(first_column, c), cols) / 4u; }

uint tile_weight_row(uint first_row) { return expert * expert_rows + first_row; }
uint weight_row(uint first_row, uint r) { return shard_row(r, tile_weight_row(first_row)); }

bool find_tile(uint first_column, uint first_row) {
  if (!find_pairs(expert, pair_count) || !in_shard(tile_weight_row(first_row))) return false;
  barrier();
  return true;
}

float tile_sum(uint c, uint r) { return pooled(c * TILE_ROWS + r); }

void begin_tile(uint first_column) {}
void finish(uint first_column, uint first_row) { finish_tile(pair_count, first_row, tile_weight_row(first_row)); }
