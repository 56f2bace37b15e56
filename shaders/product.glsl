// The matrix product of GPUs, sum over k of weight[row, k] * in[column, k]: what all kernel families and ops share. A
// workgroup computes a tile of TILE_ROWS rows of the weight and TILE_COLUMNS rows of the pass over one chunk of the
// weight's columns. Workgroup (x, y, z): tile of columns, tile of rows, chunk.
//
// The order of a sum follows from the weight's shape alone (engine/vulkan/product_config.h), never from the width of the
// pass or from who computes what: a chunk is summed from zero, by the rule of its family (product_fma.glsl,
// product_matrix.glsl), and chunks are added in ascending order. Where there are several, each writes its sums to
// `partials`, and the workgroup that comes last for a tile adds them; nobody waits.
//
// An op (product_*.comp) includes this file, declares its push constants and bindings, includes a family, and defines
// finish_tile(), which writes what quad_sum() gives for the elements of a tile. One that needs the sums of several tiles
// together (product_heads.comp) says FINISHES_TILES 0, and defines begin_tile() and finish() instead.

#extension GL_KHR_memory_scope_semantics : require

#include "weights.glsl"

layout(set = 0, binding = 2) readonly buffer Input { vec4 in_quads[]; };         // [width, in_stride]
layout(set = 0, binding = 3) readonly buffer InSquares { float in_squares[]; };  // [width, square_blocks]
layout(set = 0, binding = 4) coherent buffer Partials { vec4 partials[]; };      // [chunks, width, rows / 4, rounded up]
layout(set = 0, binding = 5) coherent buffer Counters { uint arrived[]; };       // by tile; 0 between uses

// The push constants that all ops begin with.
#define PRODUCT_PUSH                                                            \
  uint rows;           /* of the weight (shard) */                              \
  uint cols;                                                                    \
  uint width;          /* rows of the pass */                                   \
  uint in_stride;      /* quads from one row of the input to the next */        \
  uint square_blocks;  /* of a row of the input */                              \
  uint chunk_columns;  /* a multiple of 256 */                                  \
  uint partial_base;   /* of the whole weight in `partials`, in quads */        \
  uint counter_base;   /* of the shard in `arrived` */                          \
  uint row_offset;     /* of this shard in the whole weight */                  \
  uint total_rows;                                                              \
  float norm_eps;      /* 0: no norm */

const uint SQUARE_BLOCK = 64u;  // elements of a row whose squares are summed together

#ifndef FINISHES_TILES
#define FINISHES_TILES 1
#define LEAST_POOL 0u  // floats of shared memory that the op needs
#endif
