#pragma once
// How products and attention are cut into blocks: pure arithmetic. Only the cut of a product's columns belongs to the
// numeric contract; all else changes no bit of a result.

#include <array>
#include <cstdint>
#include <string>

#include "cuda_backend/kernels/params.h"
#include "engine/compute/ops.h"
#include "engine/compute/types.h"

namespace canopy::cuda {

// How products are cut into blocks, warps and columns. The order of a row's sum follows from the cut of the columns.

/// Of a GPU, what kernels are chosen by.
struct GpuLimits {
  int capability = 90;        // of the code that it runs, which may be older than the GPU; 89 is 8.9
  uint32_t shared_bytes = 0;  // of a block, at most
  uint32_t units = 0;         // multiprocessors; 0: not known
  bool warpgroups = false;    // tensor cores multiply for four warps at a time, which products may be made for

  bool copies_aside() const { return capability >= 80; }
  bool adds_slowly() const { return cuda::adds_slowly(capability); }
};

/// Of a weight's columns, in tiles of 256. Depends on the weight's shape and type alone.
struct ColumnCut {
  uint32_t chunks = 1;
  uint32_t chunk_supers = 1;    // of a chunk, the last one may have fewer
  uint32_t segment_supers = 1;  // of a chunk's first segment; the second has the rest, if there is any
  bool two_segments() const { return segment_supers < chunk_supers; }
  bool operator==(const ColumnCut&) const = default;
};
ColumnCut column_cut(const WeightParams& weight, const TileShape& shape);

struct ProductPlan {
  ColumnCut cut;
  uint32_t columns = kNarrow;  // rows of the pass of a block, up to: 8, 16, 32, 64
  uint32_t block_rows = 0;     // of the weight
  uint32_t threads = 0;
  uint32_t row_warps = 0;   // of a block, with rows of their own
  uint32_t warp_tiles = 1;  // of rows that such a warp has
  bool warpgroups = false;
  uint32_t stages = 0;                     // of each warp's ring
  uint32_t stage_bytes = 0;                // of one of them
  uint32_t stage_steps = 1;                // of columns that it has
  std::array<uint32_t, 2> row_tiles = {};  // blocks of each weight
  uint32_t pass_tiles = 0;
  uint32_t parts = 1;  // of the columns, in blocks of their own
  uint32_t shared_bytes = 0;

  uint32_t tiles() const { return (row_tiles[0] + row_tiles[1]) * pass_tiles; }
  /// Bytes that the sums of parts take.
  uint64_t partial_bytes() const { return parts > 1 ? uint64_t{4} * tiles() * parts * block_rows * columns : 0; }
};

/// A product of one weight, or of two with the same cut and the same warps in a block (second.rows may be 0), with
/// `width` rows. Shapes are of their types' tiles. `kind`: what is made of the sums.
ProductPlan plan_product(const WeightParams& first, const TileShape& first_shape, const WeightParams& second,
                         const TileShape& second_shape, uint32_t width, const GpuLimits& gpu,
                         ProductKind kind = ProductKind::add);

/// Products of pairs of a row and one of its experts, of which a block computes up to `product.columns`.
struct ExpertPlan {
  ProductPlan product;     // pass_tiles, shared_bytes: without meaning
  uint32_t totals_at = 0;  // as ExpertParams has them
  uint32_t tile_at = 0;
  uint32_t shared_bytes = 0;
};
/// `expert`: the weight of one. `columns`: 1, 8 or 16, where 8 and 16 are tiles of pairs with the same expert.
ExpertPlan plan_experts(const WeightParams& expert, const TileShape& shape, uint32_t columns, const GpuLimits& gpu);
/// How many columns that should be in a pass of `width` rows.
uint32_t columns_of_experts(const ExpertCounts& experts, uint32_t width);
/// Tiles that there is room for. Of one column: the pairs.
uint32_t most_expert_tiles(const ExpertCounts& experts, uint32_t pairs, uint32_t columns);
/// The kernel's name.
std::string expert_kernel(WeightType type, uint32_t columns);

/// Whether a launch may take both weights: there are kernels for their types, and their columns are cut alike.
bool go_together(WeightType first_type, const WeightParams& first, WeightType second_type, const WeightParams& second);
/// The kernel's name. Of one weight: twice the same type.
std::string product_kernel(WeightType first, WeightType second, const ProductPlan& plan);

// How attention (kernels/attention.cu) is cut into blocks, and what memory lies between its chunks and their merge.
// Pure arithmetic; nothing of it changes a bit of a result.

/// What is fixed when attention is recorded.
struct AttentionExtent {
  KvShape shape;
  uint32_t heads = 0;
  uint32_t max_positions = 0;  // that the page table has
  uint64_t keys = 0;           // of a row, at most
  bool windowed = false;       // a row's first key may lie anywhere
};

/// Of a launch.
struct AttentionLaunch {
  bool many = false;  // which of the two kernels
  uint32_t threads = 0;
  uint32_t blocks = 0;
  uint32_t shared_bytes = 0;

  const char* kernel(CacheType type) const;
};

/// Bytes that the results of the chunks of `rows` rows take, and rows whose results stay below what attention may use:
/// 64 MiB, or one row's.
uint64_t attention_scratch_bytes(const AttentionExtent& extent, uint32_t rows);
uint32_t attention_rows_at_a_time(const AttentionExtent& extent);

/// Fills what says how the work is cut: for p.row_count rows. Shared memory of a launch is what the GPU has, at most.
AttentionLaunch plan_attention(AttentionParams& p, const AttentionExtent& extent, const GpuLimits& gpu);

}  // namespace canopy::cuda
