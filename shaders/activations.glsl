// Layout of activations: values [width, cols] as the matrix products read them (engine/vulkan/activation_layout.h).
//
// Columns of the product (rows of the pass) are cut into tiles of TILE; the last may have columns that nobody asked for,
// whose values mean nothing. Inside a tile, element (k, c) is float (k / 4) * 4 TILE + 4 c + k mod 4: four consecutive
// elements of a column lie together, so that whoever computes them stores them at once, and the columns of those four
// follow each other.
// Tiles start at multiples of 64 floats (256 bytes: the largest uniform offset alignment Vulkan allows).

uint activation_tile_stride(uint tile, uint cols) { return (tile * ((cols + 3u) & ~3u) + 63u) & ~63u; }

// Where the elements of pass row `column` lie, for activation_element.
uvec2 activation_column(uint column, uint tile, uint cols) {
  uint t = column / tile;
  return uvec2(t * activation_tile_stride(tile, cols) + 4u * (column - t * tile), 4u * tile);
}

// Float index of element k.
uint activation_element(uvec2 place, uint k) { return place.x + (k >> 2) * place.y + (k & 3u); }
