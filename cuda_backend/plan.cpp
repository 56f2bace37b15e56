#include "cuda_backend/plan.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "cuda_backend/weight_tiles.h"
#include "engine/base/error.h"
#include "engine/compute/rows.h"

namespace canopy::cuda {
namespace {

// Enough weights under way for the largest GPUs even where a multiprocessor has one block, and room for two elsewhere.
constexpr uint32_t kLargeShared = 160 << 10, kLargeRings = 60 << 10, kRings = 40 << 10;
constexpr uint32_t kMostStages = 3, kMostNarrowStages = 4;
// Blocks of a narrow product that a large GPU should have, if they are not to be smaller than blocks can be.
constexpr uint32_t kEnoughBlocks = 256;
// Rows of the pass that are narrow in any case.
constexpr uint32_t kFewRows = 4;

/// Types of weights that a kernel takes in one launch, beside those that are the same.
constexpr std::pair<WeightType, WeightType> kTwoTypes[] = {{WeightType::q4_k, WeightType::q6_k},
                                                           {WeightType::q5_k, WeightType::q6_k}};

uint32_t pieces(uint32_t count, uint32_t size) {
  return (count + size - 1) / size;
}

uint32_t narrow_stage_bytes(const TileShape& shape) {
  return narrow_steps(shape.bytes()) * shape.step_bytes() + shape.super_bytes();
}

uint32_t best_rings(const GpuLimits& gpu) {
  return gpu.shared_bytes >= kLargeShared ? kLargeRings : kRings;
}

/// As many stages as `rings` rings have room for in what is best, but two where that is possible at all.
uint32_t stages_of(uint32_t stage_bytes, uint32_t rings, uint32_t most_stages, uint32_t other_bytes, uint32_t best,
                   const GpuLimits& gpu) {
  if (!gpu.copies_aside()) return 1;
  const uint32_t all = stage_bytes * rings;
  const uint32_t most = std::max(1u, (gpu.shared_bytes - std::min(other_bytes, gpu.shared_bytes)) / all);
  return std::min(std::clamp(best / all, 2u, most_stages), most);
}

void plan_narrow(ProductPlan& plan, uint32_t width, const GpuLimits& gpu) {
  const uint32_t warps = plan.row_warps * plan.cut.chunks;
  plan.threads = warps * 32;
  plan.block_rows = plan.row_warps * kTileRows;
  const uint32_t staged = warps * narrow_rows(width) * narrow_row(plan.stage_steps);
  plan.stages = stages_of(plan.stage_bytes, warps, kMostNarrowStages, kNarrowHead + staged, best_rings(gpu), gpu);
  const uint32_t sums = plan.cut.chunks * plan.block_rows * (width | 1u) * 4, heads = warps * kMostHeadDim * 4;
  plan.shared_bytes = kNarrowHead + std::max(warps * plan.stages * plan.stage_bytes + staged, sums + heads);
}

/// Of a narrow block, with rows of their own: eight warps are all that it has.
uint32_t narrow_row_warps(const WeightParams& weight, const TileShape& shape, uint32_t chunks) {
  if (shape.code_bytes >= 32) return 2;
  uint32_t warps = 8 / std::max(chunks, 1u);
  // Fewer where units would have one block more than others, and sums of squares leave room for it.
  while (warps > 2 && pieces(weight.rows, warps * kTileRows) < kEnoughBlocks) warps /= 2;
  return warps;
}

uint32_t wide_stage_bytes(const TileShape& shape, uint32_t columns, const GpuLimits& gpu) {
  return wide_steps(shape.bytes(), columns, gpu.capability) * shape.step_bytes() + shape.super_bytes();
}

/// For a weight, or two whose stages have as many steps.
void plan_wide(ProductPlan& plan, const TileShape& first, const TileShape& second, uint32_t warps, const GpuLimits& gpu,
               uint32_t warp_tiles = kWideWarpTiles) {
  const uint32_t steps = wide_steps(first.bytes(), plan.columns, gpu.capability);
  plan.stage_bytes = std::max(wide_stage_bytes(first, plan.columns, gpu), wide_stage_bytes(second, plan.columns, gpu));
  plan.row_warps = warps;
  plan.threads = warps * 32;
  plan.warp_tiles = warp_tiles;
  plan.block_rows = warps * warp_tiles * kTileRows;
  plan.parts = plan.cut.chunks * (plan.cut.two_segments() ? 2 : 1);
  const uint32_t staged = 2 * steps * (plan.columns + 1) * kStep * 2;
  // Of blocks of one warpgroup a multiprocessor should have three.
  const uint32_t best = plan.warpgroups && warps == kOneWarpgroup.warps ? kRings : best_rings(gpu);
  plan.stages = stages_of(plan.stage_bytes, warp_tiles * warps, kMostStages, kWideHead + staged, best, gpu);
  const uint32_t sums = plan.block_rows * (plan.columns + 1) * 4, heads = warps * kMostHeadDim * 4;
  plan.shared_bytes = kWideHead + std::max({warp_tiles * warps * plan.stages * plan.stage_bytes + staged, sums, heads});
}

}  // namespace

ColumnCut column_cut(const WeightParams& weight, const TileShape& shape) {
  // Many rows are blocks enough by themselves. Wide types need so much room for each warp that a block has few.
  const uint32_t wanted = weight.rows > 16384 ? 1 : weight.rows > 8192 || shape.code_bytes >= 32 ? 2 : 4;
  ColumnCut cut;
  cut.chunk_supers = pieces(weight.supers(), std::min(wanted, weight.supers()));
  cut.chunks = pieces(weight.supers(), cut.chunk_supers);
  cut.segment_supers = cut.chunk_supers >= 4 ? pieces(cut.chunk_supers, 2) : cut.chunk_supers;
  return cut;
}

namespace {

uint64_t blocks_of(const WeightParams& first, const WeightParams& second, const ProductPlan& plan, uint32_t width) {
  const uint32_t row_tiles = pieces(first.rows, plan.block_rows) + pieces(second.rows, plan.block_rows);
  return uint64_t{row_tiles} * pieces(width, plan.columns) * plan.parts;
}

/// Blocks' rows × columns that the busiest unit of the GPU has one after the other, where a block has so many rows.
uint64_t busiest(const WeightParams& first, const WeightParams& second, const ProductPlan& plan, uint32_t width,
                 const GpuLimits& gpu) {
  const uint64_t blocks = blocks_of(first, second, plan, width);
  return (blocks + gpu.units - 1) / gpu.units * plan.block_rows * plan.columns;
}

/// A narrow product whose blocks have half of the rows each, and half of those again, as long as the busiest unit has
/// a fifth less to do then: more blocks read rows of the pass more often. Sums of squares need kSquareBlock rows in
/// one.
void deal_out_narrow(ProductPlan& plan, const WeightParams& first, const WeightParams& second, uint32_t width,
                     const GpuLimits& gpu, ProductKind kind) {
  const uint32_t least = kind == ProductKind::add ? kSquareBlock / kTileRows : 1;
  while (gpu.units > 0 && plan.row_warps / 2 >= least) {
    ProductPlan halves = plan;
    halves.row_warps /= 2;
    plan_narrow(halves, width, gpu);
    if (busiest(first, second, halves, width, gpu) * 5 > busiest(first, second, plan, width, gpu) * 4) return;
    plan = halves;
  }
}

/// A wide product of one weight or two.
struct WidePlanner {
  const WeightParams& first;
  const TileShape& shape;
  const WeightParams& second;
  const TileShape& second_shape;
  uint32_t width;
  const GpuLimits& gpu;

  bool is_quantized() const { return shape.code_bytes < 16; }
  bool has_two_types() const { return second.rows > 0 && second_shape.bytes() != shape.bytes(); }

  /// With blocks that all GPUs have.
  ProductPlan by_warps(ProductPlan plan) const {
    const uint32_t most = most_columns(shape.code_bytes, gpu.copies_aside());
    for (plan.columns = std::min(most, width <= 16 ? 16u : width <= 32 ? 32u : 64u);; plan.columns /= 2) {
      plan_wide(plan, shape, second_shape, wide_warps(shape.code_bytes, plan.columns), gpu);
      if (plan.shared_bytes <= gpu.shared_bytes || plan.columns == 16) break;
    }
    if (plan.row_warps > kFewerWarps && (has_two_types() || !has_eight_warps(gpu.capability))) {
      plan_wide(plan, shape, second_shape, kFewerWarps, gpu);  // there is no kernel with more
    }
    return plan;
  }

  ProductPlan with(const ProductPlan& plan, uint32_t columns, const WideBlock& block) const {
    ProductPlan other = plan;
    other.columns = columns;
    plan_wide(other, shape, second_shape, block.warps, gpu, block.warp_tiles);
    return other;
  }
  /// Takes the other plan where the busiest unit has less to do, or where it has as much, `ties`.
  void take_better(ProductPlan& plan, const ProductPlan& other, bool ties = false) const {
    const uint64_t now = busiest(first, second, plan, width, gpu), then = busiest(first, second, other, width, gpu);
    if (then < now || (ties && then == now)) plan = other;
  }
  /// Blocks of kManyRows, where each unit has one at most.
  void take_many_rows(ProductPlan& plan) const {
    const ProductPlan other = with(plan, plan.columns, kManyRows);
    const bool fits = other.shared_bytes <= gpu.shared_bytes && other.stages >= 2;
    if (fits && blocks_of(first, second, other, width) <= gpu.units) take_better(plan, other, true);
  }

  ProductPlan plan(const ProductPlan& cut) const {
    ProductPlan plan = by_warps(cut);
    const bool by_warpgroups = gpu.warpgroups && plan.columns == 64 && is_quantized();
    if (by_warpgroups) {
      plan.warpgroups = true;
      plan = with(plan, 64, kTwoWarpgroups);
    }
    if (gpu.units == 0) return plan;
    if (is_quantized() && is_roomy(gpu.capability) && (plan.columns < 64 || by_warpgroups)) take_many_rows(plan);
    if (plan.columns != 64) return plan;
    // Smaller blocks are dealt out more evenly, and read rows of the pass more often.
    if (by_warpgroups) {
      take_better(plan, with(plan, 64, kOneWarpgroup));
    } else if (plan.row_warps > kFewerWarps) {
      take_better(plan, with(plan, 64, {kFewerWarps, kWideWarpTiles}));
    }
    // Blocks of half the columns have half the rows, too. Their weights are decoded twice, which takes less than what
    // they wait for where tensor cores are slow.
    if (gpu.adds_slowly()) take_better(plan, with(plan, 32, {wide_warps(shape.code_bytes, 32), kWideWarpTiles}));
    return plan;
  }
};

}  // namespace

ProductPlan plan_product(const WeightParams& first, const TileShape& first_shape, const WeightParams& second,
                         const TileShape& second_shape, uint32_t width, const GpuLimits& gpu, ProductKind kind) {
  ProductPlan cut;
  cut.cut = column_cut(first, first_shape);
  ProductPlan plan = cut;
  const WidePlanner wide{first, first_shape, second, second_shape, width, gpu};
  if (width <= kNarrow) {
    plan.row_warps = narrow_row_warps(first, first_shape, plan.cut.chunks);
    plan.stage_bytes = std::max(narrow_stage_bytes(first_shape), narrow_stage_bytes(second_shape));
    plan.stage_steps = narrow_steps(first_shape.bytes());  // of both, where there are two
    plan_narrow(plan, width, gpu);
    deal_out_narrow(plan, first, second, width, gpu, kind);
    // Each warp brings what it needs of the pass, which of many rows is more than blocks of kManyRows take together.
    const ProductPlan other = wide.plan(cut);
    if (width > kFewRows && other.warp_tiles == kManyRows.warp_tiles) plan = other;
  } else {
    plan = wide.plan(cut);
  }
  plan.pass_tiles = pieces(width, plan.columns);
  plan.row_tiles = {pieces(first.rows, plan.block_rows), second.rows > 0 ? pieces(second.rows, plan.block_rows) : 0};
  return plan;
}

ExpertPlan plan_experts(const WeightParams& expert, const TileShape& shape, uint32_t columns, const GpuLimits& gpu) {
  const bool wide = columns > kNarrow;
  const uint32_t warps = wide_warps(shape.code_bytes, columns), tile_bytes = 2 * columns * 4;
  const uint32_t sets = wide ? expert_sums(gpu.capability) : 0;
  const uint32_t totals = sets * warps * 2 * kTileRows * (columns + 1) * 4;
  GpuLimits room = gpu;
  room.shared_bytes -= std::min(gpu.shared_bytes, totals + tile_bytes);
  ExpertPlan plan;
  ProductPlan& product = plan.product;
  product.cut = column_cut(expert, shape);
  product.columns = columns;
  if (wide) {
    plan_wide(product, shape, {}, warps, room);
    product.parts = 1;
  } else {
    product.row_warps = narrow_row_warps(expert, shape, product.cut.chunks);
    product.stage_bytes = narrow_stage_bytes(shape);
    product.stage_steps = narrow_steps(shape.bytes());
    plan_narrow(product, columns, room);
  }
  product.row_tiles = {pieces(expert.rows, product.block_rows), 0};
  plan.totals_at = product.shared_bytes;
  plan.tile_at = plan.totals_at + totals;
  plan.shared_bytes = plan.tile_at + tile_bytes;
  return plan;
}

uint32_t columns_of_experts(const ExpertCounts& experts, uint32_t width) {
  if (experts.read_again(width) < kEnoughReadAgain) return 1;
  return 1.0 * width * experts.used / experts.touched(width) > kNarrow ? 16 : kNarrow;
}

uint32_t most_expert_tiles(const ExpertCounts& experts, uint32_t pairs, uint32_t columns) {
  return columns == 1 ? pairs : experts.most_tiles(pairs, columns);
}

bool go_together(WeightType first_type, const WeightParams& first, WeightType second_type, const WeightParams& second) {
  const bool types = first_type == second_type ||
                     std::ranges::find(kTwoTypes, std::pair(first_type, second_type)) != std::end(kTwoTypes);
  return types && column_cut(first, tile_shape(first_type)) == column_cut(second, tile_shape(second_type));
}

std::string expert_kernel(WeightType type, uint32_t columns) {
  return std::string("experts_") + kernel_suffix(type) + (columns > kNarrow ? "_" + std::to_string(columns) : "");
}

std::string product_kernel(WeightType first, WeightType second, const ProductPlan& plan) {
  std::string name = std::string("product_") + kernel_suffix(first);
  if (second != first) name += std::string("_") + kernel_suffix(second);
  name += "_" + std::to_string(std::max(plan.columns, kNarrow));
  if (plan.warpgroups) return name + "_warpgroups_" + std::to_string(plan.block_rows);
  if (plan.columns > kNarrow && plan.warp_tiles == kManyRows.warp_tiles)
    return name + "_" + std::to_string(plan.block_rows);
  return plan.columns == 64 && plan.row_warps == kFewerWarps ? name + "_" + std::to_string(kFewerWarps) : name;
}

namespace {

constexpr uint64_t kMostScratch = uint64_t{64} << 20;
/// Items of a K/V head from which on a block has several: fewer are better off with as many blocks as there can be.
constexpr uint32_t kFewItems = 4;
constexpr uint32_t kMostWarps = 8, kMostRing = 4, kLeastRing = 2;
/// Chunks at the start of a span that a row whose window begins in the first of them has for itself.
constexpr uint32_t kStartChunks = kSpanChunks;

uint32_t pieces_of(uint64_t count, uint32_t size) {
  return static_cast<uint32_t>((count + size - 1) / size);
}

/// How many results a row's head has room for.
struct Entries {
  uint32_t page_count, span_blocks, spans, own_chunks;

  explicit Entries(const AttentionExtent& extent)
      : page_count(pieces_of(extent.max_positions, kPagePositions)),
        span_blocks(pieces_of(page_count, kSpanChunks)),
        spans(span_blocks),
        own_chunks(kTailChunks + (extent.windowed ? kStartChunks : 0)) {
    if (!extent.windowed) return;
    // Its chunks may begin anywhere in a span, its keys anywhere in a chunk.
    const uint32_t chunks = pieces_of(extent.keys, kPagePositions) + 1;
    spans = std::min(spans, pieces_of(chunks - 1, kSpanChunks) + 1);
  }
  uint64_t bytes(const AttentionExtent& extent) const {
    return uint64_t{extent.heads} * (spans + own_chunks) *
           (extent.shape.value_dim() + 2 * pieces_of(extent.shape.value_dim(), kSliceDims)) * 4;
  }
};

uint32_t bytes_of_many(uint32_t warps, uint32_t stages, uint32_t queries) {
  return kAttentionHead + stages * kAttentionStageBytes + warps * (kWarpResults + queries);
}

/// Warps and stages of a block with an item for each warp.
void choose_many(AttentionParams& p, AttentionLaunch& launch, uint32_t queries, const GpuLimits& gpu) {
  // What is not copied aside is there when the next stage is computed, wherever it lies.
  const bool aside = gpu.copies_aside() && p.cache.type == static_cast<uint32_t>(CacheType::f16);
  uint32_t warps = kMostWarps;
  while (warps > 1 && bytes_of_many(warps, kLeastRing, queries) > gpu.shared_bytes) warps /= 2;
  p.stages = kLeastRing;
  while (aside && p.stages < kMostRing && bytes_of_many(warps, p.stages + 1, queries) <= gpu.shared_bytes) ++p.stages;
  p.warp_stages = 1;
  const uint32_t rings = p.stages * kAttentionStageBytes + warps * kWarpResults;
  p.own_warps = std::min(warps, rings / (p.warp_stages * kAttentionStageBytes));
  p.queries_at = kAttentionHead + rings;
  p.tile_pieces = std::min(p.pieces, warps);
  p.tile_rows = p.item_rows * (warps / p.tile_pieces);
  launch.threads = warps * 32;
}

/// Of a block whose warps have a chunk each.
void choose_few(AttentionParams& p, AttentionLaunch& launch, uint32_t queries, const GpuLimits& gpu) {
  constexpr uint32_t warp_bytes = kSpanChunks * kAttentionStageBytes;
  p.warp_stages =
      gpu.copies_aside() && kAttentionHead + kLeastRing * warp_bytes + queries <= gpu.shared_bytes ? kLeastRing : 1;
  p.own_warps = kSpanChunks;
  p.queries_at = kAttentionHead + p.warp_stages * warp_bytes;
  p.tile_pieces = 1;
  p.tile_rows = p.item_rows;
  launch.threads = kSpanChunks * 32;
}

}  // namespace

const char* AttentionLaunch::kernel(CacheType type) const {
  if (type == CacheType::f32) return many ? "attention_many_f32" : "attention_few_f32";
  if (type == CacheType::f16) return many ? "attention_many_f16" : "attention_few_f16";
  return many ? "attention_many_q8_0" : "attention_few_q8_0";
}

uint64_t attention_scratch_bytes(const AttentionExtent& extent, uint32_t rows) {
  return rows * Entries(extent).bytes(extent);
}

uint32_t attention_rows_at_a_time(const AttentionExtent& extent) {
  return static_cast<uint32_t>(std::clamp<uint64_t>(kMostScratch / Entries(extent).bytes(extent), 1, 65535));
}

AttentionLaunch plan_attention(AttentionParams& p, const AttentionExtent& extent, const GpuLimits& gpu) {
  const Entries entries(extent);
  p.page_count = entries.page_count;
  p.span_blocks = entries.span_blocks;
  p.spans = entries.spans;
  p.own_chunks = entries.own_chunks;
  p.value_dim = extent.shape.value_dim();
  p.slices = pieces_of(extent.shape.head_dim, kSliceDims);
  p.value_slices = pieces_of(p.value_dim, kSliceDims);
  const uint32_t group = extent.heads / extent.shape.kv_heads, queries = query_bytes(extent.shape.head_dim);
  p.item_heads = std::min(group, kItemQueries);
  p.item_rows = kItemQueries / p.item_heads;
  p.pieces = pieces_of(group, p.item_heads);

  AttentionLaunch launch;
  launch.many = pieces_of(p.row_count, p.item_rows) * p.pieces > kFewItems;
  if (launch.many) {
    choose_many(p, launch, queries, gpu);
  } else {
    choose_few(p, launch, queries, gpu);
  }
  p.tiles = pieces_of(p.row_count, p.tile_rows) * pieces_of(p.pieces, p.tile_pieces);
  p.own_blocks = pieces_of(uint64_t{p.tile_rows} * p.tile_pieces * p.own_chunks, p.own_warps);
  launch.blocks = extent.shape.kv_heads * p.tiles * (p.span_blocks + p.own_blocks) * p.value_slices;
  launch.shared_bytes = p.queries_at + (launch.many ? launch.threads / 32 : 1) * queries;
  if (launch.shared_bytes > gpu.shared_bytes) {
    throw bad_input("Heads of " + std::to_string(extent.shape.head_dim) + " elements take " +
                    std::to_string(launch.shared_bytes) + " bytes of shared memory in attention; the GPU has " +
                    std::to_string(gpu.shared_bytes) + ".");
  }
  return launch;
}

}  // namespace canopy::cuda
