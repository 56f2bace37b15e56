#pragma once
// The arguments of the CUDA kernels: one struct each, read by the backend that fills it and by the kernel. Addresses
// are of device memory; shapes are [rows, cols], row-major f32 unless said otherwise.

#include <cstdint>

namespace canopy::cuda {

/// Columns that share a partial sum of squares, and rows of a weight that lie together.
inline constexpr uint32_t kSquareBlock = 64;
inline constexpr uint32_t kBand = 64;
/// Columns of a weight that a step of a product works on.
inline constexpr uint32_t kStep = 128;

/// Activations: values [rows, stride], the columns beyond `cols` zero; sums of squares [rows, squares].
struct ActivationsParams {
  uint64_t values = 0;
  uint64_t squares = 0;
  uint32_t cols = 0;
  uint32_t stride = 0;  // cols up to a whole number of kStep
  uint32_t blocks = 0;  // of squares of a row
};

/// A weight [rows, cols] in bands of kBand rows, padded with zeros to whole bands and steps (weight_planes.h).
struct WeightParams {
  uint64_t units = 0;   // 16 bytes each
  uint64_t scales = 0;  // likewise
  uint64_t highs = 0;   // likewise: upper bits of codes, apart from the others
  uint32_t rows = 0;
  uint32_t cols = 0;
  uint32_t stored_cols = 0;
  uint32_t scale_units = 0;  // of a row
  uint32_t high_units = 0;   // likewise
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
enum class ProductKind : uint32_t { store, add, swiglu };

struct ProductParams {
  WeightParams weight;
  ActivationsParams in;
  uint32_t width = 0;
  uint32_t chunk = 0;     // columns of one, a multiple of kStep
  float norm_eps = 0;     // 0: no norm
  uint64_t partials = 0;  // [tiles, chunks, kBand, columns] where there are several chunks
  uint64_t counters = 0;  // uint32 [tiles], 0 between products
  ProductKind kind = ProductKind::store;
  uint64_t out = 0;  // store: [W, stride]; add: x [W, rows]
  uint32_t out_stride = 0;
  uint32_t out_offset = 0;
  uint64_t norm = 0;  // add: [rows]
  uint64_t aux = 0;   // add: [W, aux_stride], or 0
  uint32_t aux_stride = 0;
  uint32_t aux_offset = 0;
  ActivationsParams out_activations;  // add, swiglu
};

/// Keys or values of a layer: slots of `slot_words` words.
struct CacheParams {
  uint64_t keys = 0;
  uint64_t values = 0;
  uint32_t slot_words = 0;
  uint32_t type = 0;  // CacheType
  uint32_t kv_heads = 0;
  uint32_t head_dim = 0;
};

struct RopeStoreParams {
  uint64_t qkv = 0;
  uint64_t rows = 0;
  uint64_t rotation = 0;
  uint64_t q_norm = 0;  // 0: none
  uint64_t k_norm = 0;
  uint64_t q = 0;
  CacheParams cache;
  uint32_t heads = 0;
  float norm_eps = 0;
  uint32_t interleaved = 0;
};

struct AttentionParams {
  uint64_t q = 0;
  uint64_t rows = 0;
  uint64_t ancestors = 0;
  uint64_t pages = 0;
  CacheParams cache;
  uint64_t part_out = 0;   // [W, heads, chunks, head_dim]
  uint64_t part_sums = 0;  // [W, heads, chunks, 2]: maximum, sum
  ActivationsParams out;
  uint32_t heads = 0;
  uint32_t chunks = 0;  // of a row, at most
  uint32_t first_row = 0;
  float scale = 0;
  uint32_t block_mask = 0;
  uint32_t window = 0;
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

struct KvMoveParams {
  uint64_t moves = 0;
  uint64_t scratch = 0;  // [count, layers, 2, slot_words]
  uint64_t layers = 0;   // uint64 [layers, 2]: addresses of keys and values
  uint32_t count = 0;
  uint32_t slot_words = 0;
};

}  // namespace canopy::cuda
