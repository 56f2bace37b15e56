#pragma once
// The arguments of the CUDA kernels: one struct each, read by the backend that fills it and by the kernel. Addresses
// are of device memory; shapes are [rows, cols], row-major f32 unless said otherwise.

#include <cmath>
#include <cstdint>

#include "engine/compute/shared_code.h"

namespace canopy::cuda {

// Rows of activations in device memory: what products read, and in which units.

/// Columns that share a partial sum of squares.
inline constexpr uint32_t kSquareBlock = 32;
/// Columns that products take at a time.
inline constexpr uint32_t kStep = 128;

/// Activations: values [rows, stride], the columns beyond `cols` zero; sums of squares [rows, squares]. Products read
/// them as halves: half * unit, where a row's unit is a power of two (unit_of).
struct ActivationsParams {
  uint64_t values = 0;
  uint64_t squares = 0;
  uint64_t halves = 0;      // [rows, stride], in the order of half_place
  uint64_t units = 0;       // [rows]
  uint64_t next_units = 0;  // [rows]: for what is added to a residual stream next, by what the row was before; or 0
  uint32_t cols = 0;
  uint32_t stride = 0;  // cols up to a whole number of kStep
  uint32_t blocks = 0;  // of squares of a row
};

/// Where the half of column k is in its row: of each kStep columns, columns 4s ... 4s + 3 of each block of 32 follow
/// each other, those of the four blocks side by side, as lanes of a quad take them.
CANOPY_SHARED uint32_t half_place(uint32_t k) {
  return k / kStep * kStep + k / 4 % 8 * 16 + k / 32 % 4 * 4 + k % 4;
}

/// The unit of halves of a row that is normalized by `factor`, 1 / its root mean square: 2^5 to 2^6 times that mean. So
/// an element may be 2^20 times the mean that the row had when its unit was chosen, which leaves room for what a layer
/// adds, and is off by 2^-19 of the mean at most besides the rounding of a half.
CANOPY_SHARED float unit_of(float factor) {
  constexpr uint32_t above = 5, bias = 127, most = 2 * bias - 2;
  const uint32_t exponent = bits_of_float(factor) >> 23 & 255u, unit = 2 * bias + above - exponent;
  return float_of_bits((unit < most ? unit : most) << 23);
}
/// 1 / unit, exactly.
CANOPY_SHARED float inverse_of_unit(float unit) {
  return float_of_bits((254u << 23) - bits_of_float(unit));
}
/// The unit of a row whose elements have this mean of squares, which a row of zeros has, too.
CANOPY_SHARED float unit_of_squares(float mean) {
  constexpr float least = 1e-12f;
  return unit_of(1.0f / sqrtf(mean + least));
}

// The arguments of the CUDA kernels: one struct each, read by the backend that fills it and by the kernel. Addresses
// are of device memory; shapes are [rows, cols], row-major f32 unless said otherwise.

/// A tile of a weight is what a warp works on at a time, in two steps; its memory is one run of bytes.
inline constexpr uint32_t kTileRows = 16, kTileColumns = 256;

/// What a tile of a type is made of, in bytes. Each step has codes, [4 octets of columns][16 rows][4 blocks of 32
/// columns][code_bytes], with as much as fits into 4 bits of each code or all of it; then two more bits and one more
/// bit of each code where the type has them, [2 halves of a block][16 rows][4 blocks][4] and [16 rows][4 blocks][4];
/// then [16 rows][step_scale_bytes]. Behind both steps: [16 rows][scale_bytes], [16 rows][behind_bytes].
struct TileShape {
  uint32_t code_bytes = 0;      // of eight columns
  uint32_t twos = 0, ones = 0;  // 1: has these bits
  uint32_t step_scale_bytes = 0, scale_bytes = 0, behind_bytes = 0;

  CANOPY_SHARED constexpr uint32_t twos_at() const { return code_bytes * 256; }  // bytes from the start of a step
  CANOPY_SHARED constexpr uint32_t ones_at() const { return twos_at() + twos * 512; }
  CANOPY_SHARED constexpr uint32_t step_scales_at() const { return ones_at() + ones * 256; }
  CANOPY_SHARED constexpr uint32_t step_bytes() const { return step_scales_at() + step_scale_bytes * kTileRows; }
  CANOPY_SHARED constexpr uint32_t super_bytes() const { return (scale_bytes + behind_bytes) * kTileRows; }
  CANOPY_SHARED constexpr uint32_t bytes() const { return 2 * step_bytes() + super_bytes(); }
};
inline constexpr TileShape kTileF32{32}, kTileF16{16}, kTileQ80{8, 0, 0, 8}, kTileQ40{4, 0, 0, 8},
    kTileQ41{4, 0, 0, 16}, kTileQ50{4, 0, 1, 8}, kTileQ51{4, 0, 1, 16}, kTileQ2K{0, 1, 0, 0, 16, 4},
    kTileQ3K{0, 1, 1, 0, 16, 2}, kTileQ4K{4, 0, 0, 0, 16}, kTileQ5K{4, 0, 1, 0, 16}, kTileQ6K{4, 1, 0, 0, 16, 2},
    kTileIq4Xs{4, 0, 0, 0, 8, 2}, kTileMxfp4{4, 0, 0, 4};

// Where the bits of column i of a block are, i = 0 ... 31. Of eight columns four pairs fall out of a word as two halves
// each, an even column in the lower one, at bits 0 or 4 after a shift of 8 or none.

/// First bit of its 4 bits in the word of its eight columns.
CANOPY_SHARED constexpr uint32_t nibble_at(uint32_t i) {
  return i % 8 / 2 * 4 + i % 2 * 16;
}
/// The same in codebook types, whose codes are looked up in the order of the columns.
CANOPY_SHARED constexpr uint32_t index_at(uint32_t i) {
  return i % 8 * 4;
}
/// Rotations to the right that bring upper bits beside the nibble, pairs 2c and 2c + 1 of a block at a time, to bits 4
/// and 8: a single bit of pairs c = 0 ... 7, two bits of c = 0 ... 3 of half a block.
CANOPY_SHARED constexpr uint32_t one_rotation(uint32_t c) {
  return c + c / 4 * 4;
}
CANOPY_SHARED constexpr uint32_t two_rotation(uint32_t c) {
  return c * 2 + c / 2 * 4;
}
CANOPY_SHARED constexpr uint32_t one_at(uint32_t i) {
  return (one_rotation(i / 4) + (i % 4 < 2 ? 4 : 8) + i % 2 * 16) % 32;
}
CANOPY_SHARED constexpr uint32_t two_at(uint32_t i) {
  return (two_rotation(i % 16 / 4) + (i % 4 < 2 ? 4 : 8) + i % 2 * 16) % 32;
}

/// Scales and minima of quantized weights in tiles are 1 / (unit * kCodeUnit) times the weight's; minima of blocks of
/// 32 with halves of their own, which may be many times as large as scales, are 1 / kMinimumPart of that.
inline constexpr float kCodeUnit = 0x1p-24f;
inline constexpr uint32_t kMinimumPart = 32;

/// A weight [rows, cols] as tiles, padded with zeros: tile (rows / 16, columns / 256) at group * supers + super. What
/// kernels add up are sums in `unit`.
struct WeightParams {
  uint64_t tiles = 0;
  uint32_t rows = 0;
  uint32_t cols = 0;
  float unit = 1;  // a power of two

  CANOPY_SHARED constexpr uint32_t groups() const { return (rows + kTileRows - 1) / kTileRows; }
  CANOPY_SHARED constexpr uint32_t supers() const { return (cols + kTileColumns - 1) / kTileColumns; }
  CANOPY_SHARED constexpr uint32_t steps() const { return (cols + kStep - 1) / kStep; }
};

struct EmbedParams {
  WeightParams table;
  uint64_t rows = 0;  // Row
  uint64_t x = 0;
  uint64_t norm = 0;
  ActivationsParams out;
  float scale = 1;
};

/// What a product does with its sums.
enum class ProductKind : uint32_t { store, add, swiglu, heads };

/// Keys or values of a layer: slots of `slot_words` words.
struct CacheParams {
  uint64_t keys = 0;
  uint64_t values = 0;
  uint32_t slot_words = 0;
  uint32_t type = 0;  // CacheType
  uint32_t kv_heads = 0;
  uint32_t head_dim = 0;
};

/// Elements of a head.
inline constexpr uint32_t kMostHeadDim = 576;

struct RopeStoreParams {
  uint64_t qkv = 0;
  uint64_t rows = 0;
  uint64_t rotation = 0;
  uint64_t q_norm = 0;  // 0: none
  uint64_t k_norm = 0;
  uint64_t v_norm = 0;  // of rope_store alone
  uint64_t q = 0;
  CacheParams cache;
  uint32_t heads = 0;
  uint32_t row_heads = 0;  // of a row of qkv: query heads, keys, and values but of a latent cache
  float norm_eps = 0;
  uint32_t interleaved = 0;
  uint32_t query_offset = 0;  // of the rotations of queries, in positions
};

/// Rows of the pass in a narrow product, at most.
inline constexpr uint32_t kNarrow = 8;
/// Shared memory at the beginning that has other things than the rings of weights.
inline constexpr uint32_t kNarrowHead = 64, kWideHead = 512;
/// Steps that a stage of a narrow product's ring has of tiles of so many bytes: as many as leave room for several.
CANOPY_SHARED constexpr uint32_t narrow_steps(uint32_t tile_bytes) {
  return tile_bytes <= 3584 ? 2 : 1;
}
/// Bytes of a row of the pass that a warp of a narrow product has in shared memory: a stage of halves, and some more.
CANOPY_SHARED constexpr uint32_t narrow_row(uint32_t steps) {
  return steps * kStep * 2 + 32;
}
/// Rows that there is room for: one, or all.
CANOPY_SHARED constexpr uint32_t narrow_rows(uint32_t width) {
  return width == 1 ? 1 : kNarrow;
}
/// Rows of the pass at a time, at most. Without copies that go on aside there is too little shared memory for 64, and
/// what is copied takes registers.
CANOPY_SHARED constexpr uint32_t most_columns(uint32_t code_bytes, bool copies_aside) {
  return copies_aside ? 64 : code_bytes >= 32 ? 16 : 32;
}
/// Warps of a block of a wide product: as many as its shared memory has room for.
CANOPY_SHARED constexpr uint32_t wide_warps(uint32_t code_bytes, uint32_t columns) {
  if (code_bytes >= 32) return columns == 32 ? 4 : 2;
  return code_bytes < 16 && columns == 64 ? 8 : 4;
}
/// Whether a multiprocessor has 164 KiB of shared memory or more, as those of data center GPUs; others have 100 or 64.
/// Of a GPU, and of an architecture whose code it runs.
CANOPY_SHARED constexpr bool is_roomy(int capability) {
  return capability == 80 || (capability >= 90 && capability < 110);
}
/// Whether tensor cores add in f32 at half the rate at which they add in halves, as those of GeForce GPUs and their
/// kin. Of a GPU, and of an architecture whose code it runs.
CANOPY_SHARED constexpr bool adds_slowly(int capability) {
  return (capability >= 86 && capability < 90) || capability >= 120;
}
/// Steps of a stage of a wide product's ring. Of two steps scales are read once, where there are registers for that,
/// and shared memory for two blocks on a multiprocessor.
CANOPY_SHARED constexpr uint32_t wide_steps(uint32_t tile_bytes, uint32_t columns, int capability) {
  return columns <= 32 && is_roomy(capability) ? narrow_steps(tile_bytes) : 1;
}
/// The other number of warps that blocks of 64 rows of the pass may have, where those of wide_warps() would leave many
/// units of a GPU without a last one. Only where that is 8.
inline constexpr uint32_t kFewerWarps = 6;
/// Whether blocks of 64 rows of the pass may have eight warps: sums as halves on the way take more registers.
CANOPY_SHARED constexpr bool has_eight_warps(int capability) {
  return !adds_slowly(capability);
}

/// Warps of a block of a wide product, and tiles of the weight's rows that each has: kWideWarpTiles, but for these.
struct WideBlock {
  uint32_t warps, warp_tiles;
};
inline constexpr uint32_t kWideWarpTiles = 2;
/// So many rows that rows of the pass are read seldom. It has all registers of a unit: for products of which each unit
/// has one block at most, on roomy ones.
inline constexpr WideBlock kManyRows = {8, 3};
/// The others for warpgroups, which are four warps each.
inline constexpr WideBlock kTwoWarpgroups = {8, 2}, kOneWarpgroup = {4, 3};

/// Products of one or two weights, one under the other, with the rows of a pass (kernels/product.h).
struct ProductParams {
  WeightParams weights[2];  // the second: of another type, or without rows
  ActivationsParams in;
  uint32_t width = 0;
  float norm_eps = 0;  // 0: no norm
  // The order of a row's sum: columns are cut into chunks of so many tiles, a chunk into one or two segments of so
  // many. Segments are summed from 0, added within their chunk, and chunks are added in ascending order.
  uint32_t chunk_supers = 0, segment_supers = 0;
  uint32_t row_warps = 0;      // of a block, that have rows of their own; the others have other chunks
  uint32_t stages = 0;         // of a warp's ring of weights
  uint32_t row_tiles[2] = {};  // blocks of each weight
  uint64_t partials = 0;       // wide products of several blocks: float [tiles, parts of a tile, sums of a block]
  uint64_t counters = 0;       // uint32 [tiles], 0 between kernels
  ProductKind kind = ProductKind::store;
  uint64_t out = 0;  // store: [W, stride]; add: x [W, rows]; heads: qkv [W, stride]
  uint32_t out_stride = 0;
  uint32_t out_offset = 0;
  uint64_t norm = 0;  // add: [rows]
  uint64_t aux = 0;   // add: [W, aux_stride], or 0
  uint32_t aux_stride = 0;
  uint32_t aux_offset = 0;
  ActivationsParams out_activations;  // add, swiglu
  uint32_t gelu = 0;                  // swiglu: 1 where gates go through gelu
  RopeStoreParams heads;              // heads
  uint64_t head_counters = 0;         // uint32 [tiles of the pass, heads + 2 kv_heads], 0 between products
};

/// Experts of a layer, and of a row, at most.
inline constexpr uint32_t kMostExperts = 1024, kMostUsedExperts = 64;
/// What a clamped gate is multiplied by in its sigmoid.
inline constexpr float kGateSlope = 1.702f;
/// Experts whose logits a block makes, one in each warp; shared memory of that kernel: a flag, keys, logits, sums.
inline constexpr uint32_t kRouteAhead = 4;  // loads of four columns that a lane asks for together
inline constexpr uint32_t kRouteExperts = 8, kRouteShared = 16 + (kMostExperts + kMostUsedExperts) * 4 + 256 * 4;

/// The experts that rows choose (kernels/route.cu).
struct RouteParams {
  uint64_t router = 0;  // [experts + shared_gates, cols]
  ActivationsParams in;
  uint64_t logits = 0;    // [rows, experts + shared_gates]
  uint64_t chosen = 0;    // uint32 [rows, used]
  uint64_t shares = 0;    // [rows, used + shared_experts]
  uint64_t counters = 0;  // uint32 [rows], 0 between kernels
  uint64_t bias = 0;      // [experts + shared_gates], or 0
  uint64_t scales = 0;    // [experts], of shares, or 0
  uint64_t rows = 0;      // Row [rows], where touched
  uint64_t touched = 0;   // uint32 [(experts + 31) / 32]: the bits of those that rows with ancestors choose; or 0
  uint32_t experts = 0, used = 0;
  uint32_t shared_experts = 0;  // 0 or 1
  uint32_t shared_gates = 0;    // likewise: whether the router has a row for it
  uint32_t of_chosen = 0;       // 1: shares of the chosen ones
  float norm_eps = 0;           // 0: no norm
  float factor = 1;             // of shares
  uint32_t sigmoid = 0;         // 1: scores are sigmoids of logits
  uint64_t choice_bias = 0;     // [experts], or 0
  uint32_t groups = 1, groups_used = 1;
};

/// How many bits are set in the words of each layer, which become 0. One warp per layer.
struct CountExpertsParams {
  uint64_t touched = 0;  // uint32 [layers, words]
  uint64_t counts = 0;   // uint32 [layers]
  uint32_t words = 0;    // at most 32
};

/// Pairs of a row and one of its experts that a block computes together: those of `expert`, `count` of them, from
/// `first` on in the order of the pairs.
struct ExpertTile {
  uint32_t expert, first, count, unused;
};
inline constexpr uint32_t kGroupThreads = 256;
/// Shared memory of the kernel that groups them: pairs of each expert, where the next one goes, sums of warps.
inline constexpr uint32_t kGroupShared = kMostExperts * 8 + kGroupThreads / 32 * 8;

/// Pairs grouped by their experts (kernels/route.cu). One block.
struct ExpertGroupsParams {
  uint64_t chosen = 0;  // uint32 [pairs]
  uint64_t tiles = 0;   // ExpertTile [most_tiles], those that there are not with a count of 0
  uint64_t order = 0;   // uint32 [pairs]: those of an expert together
  uint32_t pairs = 0, experts = 0;
  uint32_t tile_pairs = 0, most_tiles = 0;
};

/// Sets of sums of a wide tile of pairs in shared memory: a chunk's too, where copies or sums as halves take registers.
CANOPY_SHARED constexpr uint32_t expert_sums(int capability) {
  return capability >= 80 && !adds_slowly(capability) ? 1 : 2;
}

/// Products of pairs of a row and one of its experts (kernels/experts.cu).
struct ExpertParams {
  ProductParams product;      // of a tile of `width` pairs at most; its weight is the first expert
  uint64_t chosen = 0;        // uint32 [pairs]
  uint64_t tiles = 0;         // ExpertTile [blocks]; 0: each pair is a tile
  uint64_t order = 0;         // uint32 [pairs], where tiles
  uint64_t expert_bytes = 0;  // from one expert's tiles to the next's
  uint32_t row_pairs = 0;     // pairs that read the same row of activations
  uint64_t bias = 0;          // of the rows of all experts, or 0
  float limit = 0;            // of the gates of a swiglu; 0: none
  // Bytes of shared memory before a tile's rows and pairs, uint32 [2, width], and before a wide tile's whole sums.
  uint32_t tile_at = 0, totals_at = 0;
};

/// What rows make of the products of their experts.
struct ExpertAddParams {
  uint64_t products = 0;  // [rows, used, cols]
  uint64_t shares = 0;    // [rows, used], or one more with a shared expert
  uint64_t shared = 0;    // [rows, cols], what the shared expert makes of them, or 0
  uint64_t x = 0;         // [rows, cols]
  uint64_t norm = 0;      // [cols]
  ActivationsParams out;
  uint64_t aux = 0;  // [rows, aux_stride], or 0
  uint32_t aux_stride = 0, aux_offset = 0;
  uint32_t used = 0;
};

/// Elements of a head whose keys or values are in shared memory together: a stage has so many of 32 positions in f16,
/// of 16 in the other types, in two halves each.
inline constexpr uint32_t kSliceDims = 128, kAttentionStageBytes = 32 * kSliceDims * 2;
/// Queries of a K/V head that a warp works on at a time. Chunks whose results are merged before those of others are,
/// and warps that have a chunk each.
inline constexpr uint32_t kItemQueries = 8, kSpanChunks = 4;
/// Chunks at the end of what a row sees that it may have for itself.
inline constexpr uint32_t kTailChunks = 2;
/// Shared memory at the beginning that has other things than the rings; results of a warp's queries of a slice, and of
/// each lane two queries' sums.
inline constexpr uint32_t kAttentionHead = 576, kWarpOutputs = kItemQueries * kSliceDims * 4,
                          kWarpResults = kWarpOutputs + 32 * 2 * 8;
/// Bytes of a warp's queries: as halves and what those leave, with 8 elements more than a head has, for the banks.
CANOPY_SHARED constexpr uint32_t query_dims(uint32_t head_dim) {
  return (head_dim + 15) / 16 * 16;
}
CANOPY_SHARED constexpr uint32_t query_bytes(uint32_t head_dim) {
  return kItemQueries * (query_dims(head_dim) + 8) * 4;
}

/// Attention of some rows (kernels/attention.cu). An item is what a warp works on: `item_rows` rows, `item_heads` of
/// each row's query heads that share a K/V head. A tile has tile_rows rows and tile_pieces pieces of their heads.
struct AttentionParams {
  uint64_t q = 0;
  uint64_t rows = 0;
  uint64_t ancestors = 0;
  uint64_t pages = 0;
  CacheParams cache;
  uint64_t part_out = 0;   // [rows, heads, entries, value_dim]
  uint64_t part_sums = 0;  // [rows, heads, entries, value_slices, 2]: maximum, sum
  uint64_t counters = 0;   // uint32 [kv_heads * tiles * value_slices], 0 between kernels
  ActivationsParams out;
  uint32_t heads = 0;
  uint32_t first_row = 0, row_count = 0;
  uint32_t page_count = 0;  // of the table
  float scale = 0;
  uint32_t block_mask = 0;
  uint32_t window = 0;
  uint32_t item_rows = 0, item_heads = 0, pieces = 0;  // pieces: of a K/V head's query heads
  uint32_t tile_rows = 0, tile_pieces = 0, tiles = 0;
  uint32_t value_dim = 0;     // elements of a value: the first of a key in a latent cache
  uint32_t slices = 0;        // of kSliceDims elements of a key
  uint32_t value_slices = 0;  // of a value
  uint32_t spans = 0;         // entries of a row's head for chunks that rows share
  uint32_t span_blocks = 0;   // spans that positions may lie in, each a block's
  uint32_t own_chunks = 0;    // entries for those of its own, behind
  uint32_t own_blocks = 0;    // of a tile
  uint32_t own_warps = 0;     // of such a block that have something to do
  uint32_t stages = 0;        // of the ring that a block has for all its warps
  uint32_t warp_stages = 0;   // of a ring that a warp has for itself
  uint32_t queries_at = 0;    // bytes of shared memory before them
  uint64_t sinks = 0;         // [heads], or 0
  float softcap = 0;          // 0: none

  CANOPY_SHARED constexpr uint32_t group() const { return heads / cache.kv_heads; }
  CANOPY_SHARED constexpr uint32_t entries() const { return spans + own_chunks; }
};

struct SelectParams {
  ActivationsParams in, out;
  uint64_t index = 0;
  uint32_t first = 0;
};

/// Tokens of a block of argmax, top_k and sample.
inline constexpr uint32_t kArgmaxBlock = 4096, kTopBlock = 4096, kSampleBlock = 2048;

struct ArgmaxParams {
  uint64_t logits = 0;
  uint64_t out = 0;
  uint64_t found = 0;     // uint64 [rows, blocks]
  uint64_t counters = 0;  // uint32 [rows], 0 between kernels
  uint32_t vocab = 0;
  uint32_t first_out = 0;
};

struct TopKParams {
  uint64_t logits = 0;
  uint64_t ids = 0, values = 0, log_sum_exp = 0;
  uint64_t found = 0;     // uint64 [rows, blocks, k]
  uint64_t sums = 0;      // [rows, blocks, 2]: maximum, sum
  uint64_t counters = 0;  // uint32 [rows], 0 between kernels
  uint32_t vocab = 0, k = 0, first_out = 0;
  float multiplier = 1, softcap = 0;
};

struct SampleParams {
  uint64_t logits = 0;
  uint64_t settings = 0;     // SamplingWords
  uint64_t rows = 0;         // SampledRow
  uint64_t adjustments = 0;  // TokenAdjustment [most_adjustments]
  uint64_t tokens = 0;       // uint32 [first_row + rows]
  uint64_t best = 0;         // uint64 [rows, blocks]
  uint64_t drawn = 0;        // uint64 [rows, blocks]
  uint64_t state = 0;        // SampleState [rows]
  uint64_t list = 0;         // uint64 [rows, kSampleList]
  uint64_t counters = 0;     // uint32 [rows], 0 between kernels
  uint32_t vocab = 0, first_row = 0, most_adjustments = 0;
};

/// What the filters of `sample` keep of a row between kernels.
struct SampleState {
  static constexpr uint32_t kBuckets = 1024;
  uint64_t weights[kBuckets];  // of the tokens in each bucket of distance from the best
  uint64_t wanted;             // weight that top-p wants
  uint32_t counts[kBuckets];   // of these tokens
  uint32_t listed;             // tokens that should be in the list
  uint32_t edge;               // the last bucket whose tokens are
};
/// Tokens that the list has room for; where there are more, all logits are looked at.
inline constexpr uint32_t kSampleList = 4096;

struct PickParams {
  uint64_t logits = 0, pairs = 0, out = 0;
  uint32_t count = 0, first_row = 0, rows = 0, vocab = 0;
};

struct CopyRowsParams {
  uint64_t in = 0, moves = 0, out = 0;
  uint32_t cols = 0;
};

struct NormRowsParams {
  uint64_t in = 0;
  uint64_t norm = 0;  // 0: none
  ActivationsParams out;
};

/// Threads of a row.
inline constexpr uint32_t kNormAddThreads = 256;

struct NormAddParams {
  uint64_t in = 0;      // [rows, cols]
  uint64_t weight = 0;  // [cols]
  uint64_t x = 0;       // [rows, cols]
  uint64_t norm = 0;    // [cols]
  ActivationsParams out;
  uint64_t aux = 0;  // [rows, aux_stride], or 0
  uint32_t aux_stride = 0, aux_offset = 0;
  float aux_scale = 1;
  float eps = 0;
  float x_scale = 1;
};

struct CapLogitsParams {
  uint64_t logits = 0;  // [rows, vocab]
  uint32_t vocab = 0;
  float cap = 0;
};

struct ConvRowsParams {
  uint64_t in = 0;      // [rows, cols]
  uint64_t base = 0;    // [2, taps, cols]
  uint64_t kernel = 0;  // [rows, 2, taps, cols / group]
  uint64_t x = 0;       // [rows, cols]
  uint32_t cols = 0, taps = 0, group = 0, side = 0;
};

struct AddBiasParams {
  uint64_t x = 0;
  uint64_t bias = 0;
  uint32_t cols = 0;
};

/// Columns of a state that a block has, and the lanes that share one: each has every so many-th quad of its elements.
inline constexpr uint32_t kStateColumns = 32, kColumnLanes = 4;
inline constexpr uint32_t kMostKeyDim = 128;  // as DeltaShape

/// As DeltaShape.
struct DeltaShapeParams {
  uint32_t row_elements = 0;
  uint32_t channels = 0;
  uint32_t key_heads = 0, value_heads = 0;
  uint32_t key_dim = 0, value_dim = 0;
  uint32_t taps = 0;
  uint32_t tiled = 0;
  uint32_t corrects = 1;
};

struct DeltaInputsParams {
  uint64_t in = 0, out = 0;
  uint64_t steps = 0;
  uint64_t taps = 0, bias = 0, rate = 0;
  uint64_t tails = 0;
  DeltaShapeParams shape;
  float query_scale = 1;  // 1 / sqrt(key_dim)
  float eps = 0;
  uint64_t conv_bias = 0;  // 0: none
};

struct DeltaNetParams {
  uint64_t in = 0;
  uint64_t out = 0;  // 0: nothing is read off the states
  uint64_t steps = 0;
  uint64_t states = 0, spare = 0;
  DeltaShapeParams shape;
  uint32_t step_count = 0;
  uint64_t skip = 0;  // of a scan
};

struct GatedNormParams {
  uint64_t in = 0, gate = 0, weight = 0;
  ActivationsParams out;
  uint32_t head_dim = 0;
  float eps = 0;
  uint32_t gate_within = 0;
};

struct GateParams {
  uint64_t gate = 0;
  ActivationsParams x;
};

struct SquareReluParams {
  uint64_t in = 0;  // [rows, cols]
  ActivationsParams out;
};

struct GateInputsParams {
  uint64_t gate = 0;    // [rows, cols]
  uint64_t inputs = 0;  // [rows, stride]
  ActivationsParams out;
  uint32_t stride = 0, offset = 0;
  float scale = 1;
};

struct ShortConvParams {
  uint64_t in = 0;  // [rows, 3 cols]
  uint64_t steps = 0;
  uint64_t kernel = 0;    // [cols, taps]
  uint64_t tails = 0;     // [kept, taps - 1, cols]
  ActivationsParams out;  // without an address: tails alone are written
  uint32_t cols = 0, taps = 0;
};

struct KvMoveParams {
  uint64_t moves = 0;
  uint64_t scratch = 0;  // [count, layers, 2, slot_words]
  uint64_t layers = 0;   // uint64 [layers, 2]: addresses of keys and values
  uint32_t count = 0;
  uint32_t slot_words = 0;
};

/// Units of 16 bytes from pinned memory of the host to the device's.
struct UploadParams {
  uint64_t from = 0, to = 0;
  uint32_t units = 0;
};

// The arguments of the kernels that measure what a GPU reaches (peak.cu).

/// Units of 16 bytes that a thread of peak_read reads.
inline constexpr uint32_t kPeakReadUnits = 16;

struct PeakReadParams {
  uint64_t from = 0, out = 0;
  uint32_t never = 0;  // no thread's sum
};

/// Of the kernels that repeat a loop.
struct PeakLoopParams {
  uint64_t out = 0;
  uint32_t loops = 0;
  float factor = 0.5f, summand = 1, never = -1;
};

/// Sums of a warp in peak_matrix, each added to twice in a loop: by 16 rows, 8 columns and 16 of the depth.
inline constexpr uint32_t kPeakMatrixChains = 8;
/// Products of a warpgroup in a loop of peak_warpgroups, of 64 rows and columns and 16 of the depth, and the bytes of
/// shared memory that their columns take.
inline constexpr uint32_t kPeakWarpgroupProducts = 8, kPeakWarpgroupBytes = 64 * 16 * 2;

}  // namespace canopy::cuda
