#pragma once
// What is compiled once for each instruction set: the loops over weights, activations, keys and values. The rest of the
// device calls them through a table, so that one program runs on every processor with what it has.
//
// Numeric contract: all sets give the same bits. A product of quantized weights multiplies whole numbers, whose sums
// over a block are exact in any order; then each output has one accumulator, to which blocks are added in ascending
// order by an explicit multiply-add. What is not a product works on lanes of sixteen floats, whatever a register
// holds, and adds them up as a fixed tree. Nothing here calls the mathematical functions of a library.
//
// This header is all that kernels.cpp includes beside intrinsics: an inline function of a library, compiled there for
// a newer processor, might be the copy that the linker keeps for the whole program.

#include <cstddef>
#include <cstdint>

namespace canopy::cpu {

inline constexpr uint32_t kBand = 16;   // outputs of a weight that lie side by side
inline constexpr uint32_t kBlock = 32;  // columns of activations that share a scale
inline constexpr uint32_t kPage = 64;   // positions of keys and values that lie side by side

/// How the elements of a weight lie in a band. The codes of 16 outputs stand side by side in lines of 64 bytes, four
/// for each output:
///
///   nibbles  8 columns a line. Of the two 16-bit words of an output, word h has in nibble p column 2 p + h.
///   bytes    4 columns a line. Word h has column h in its low and column 2 + h in its high byte; signed.
///
/// Behind all codes of the band are its scales. Plain: for each block of 32 columns 16 scales, then 16 minimums where
/// there are any (halves). With sub-scales: for each 256 columns 16 scales and 16 minimums (halves), then for each of
/// its 8 blocks whole numbers they are multiplied by: nibbles 16 + 16 bytes, bytes two times 16 for the halves of a
/// block, and as many for minimums where there are any.
///
///   value = scale * code + minimum; with sub-scales scale * s * code - minimum * m
///
/// Dense weights lie column by column, 16 elements each.
enum class Form : uint32_t { nibbles, nibbles_with_sub_scales, bytes, bytes_with_sub_scales, f32, f16, bf16 };

struct Packed {
  Form form = Form::f32;
  bool has_minimums = false;
  bool minus_eight = false;   // nibbles: of codes less 8, so that each minimum is -8 scales
  bool brain_scales = false;  // bytes: scales are upper halves of floats
  uint32_t rows = 0, cols = 0;
  uint32_t bands = 0;
  uint64_t band_bytes = 0;
  uint64_t scales_at = 0;  // in a band
  const uint8_t* data = nullptr;
};

/// What a block of 32 activations is multiplied by and with.
struct BlockFactors {
  float scale = 0;              // value = scale * code
  float sum = 0;                // scale * sum of the codes
  float half_sums[2] = {0, 0};  // of the first and the last 16 columns
};

/// Activations [rows, cols] as products read them; columns are filled up to whole blocks with zeros. `stride` is the
/// width of the pass.
struct RowsView {
  int16_t* codes = nullptr;         // [blocks][stride][32], of magnitude 32639 at most
  BlockFactors* factors = nullptr;  // [blocks][stride]
  float* squares = nullptr;         // [blocks][stride]: sums of squares before the norm's weight
  float* values = nullptr;          // [stride][blocks * 32]
  uint32_t cols = 0, blocks = 0, stride = 0;
};

/// One head of one row in attention: a query and which positions of a page it sees.
struct PageQuery {
  const float* query = nullptr;  // [dim]
  uint32_t first = 0, end = 0;   // in the page; first < end
  float* part = nullptr;         // [2 + dim]: largest score, sum of exponentials, weighted sum of values
};

/// Elements of a value in attention, at most.
inline constexpr uint32_t kMostValueDim = 512;
/// Queries that a kernel takes together: with no more, halves are converted while they are read.
inline constexpr uint32_t kQueriesTogether = 4;

/// Keys [dim][64] and values [64][value_stride] of a page. value_stride is dim filled up to a multiple of 16.
/// As floats, or as halves where these are set: then values lie without anything between two positions.
struct PageView {
  const float* keys = nullptr;
  const float* values = nullptr;
  const uint16_t* half_keys = nullptr;
  const uint16_t* half_values = nullptr;
  uint32_t dim = 0, value_dim = 0, value_stride = 0;
  float scale = 0, softcap = 0;  // softcap 0: none
};

struct TopEntries {
  uint32_t* ids;
  float* values;
};

struct Kernels {
  const char* name;
  /// Most rows that one tile of a product computes.
  uint32_t tile;

  /// out[r * stride + 16 * b + lane] = factor[r] * sum of the weight's row 16 * (band + b) + lane times row first + r.
  /// All lanes of the bands are written, also those beyond the weight's rows (0).
  void (*product)(const Packed& weight, uint32_t band, uint32_t bands, const RowsView& in, uint32_t first,
                  uint32_t rows, const float* factors, float* out, uint64_t stride);
  /// Stores 32 values as a block of a row; `squared`: what the sum of squares is of, or null where there is none.
  void (*write_block)(const RowsView& to, uint32_t row, uint32_t block, const float* values, const float* squared);
  /// The row's product with a plain vector: sum of a[k] * b[k].
  float (*dot)(const float* a, const float* b, uint32_t count);

  /// out = function(gate) * up. 0: silu, 1: gelu, 2: clamped by `limit` (ExpertSwigluArgs).
  void (*gated)(uint32_t function, const float* gate, const float* up, float limit, float* out, uint32_t count);
  /// x / (1 + exp(-x)), and 1 / (1 + exp(-x)), in place.
  void (*silu)(float* x, uint32_t count);
  void (*sigmoid)(float* x, uint32_t count);
  /// y = softcap * tanh(multiplier * x / softcap), or multiplier * x where softcap is 0, in place.
  void (*cap)(float* x, uint64_t count, float multiplier, float softcap);

  void (*to_halves)(const float* from, uint16_t* to, uint32_t count);
  void (*from_halves)(const uint16_t* from, float* to, uint32_t count);

  /// The part of each query in a page.
  void (*attend)(const PageView& page, const PageQuery* queries, uint32_t count);
  /// Adds a part to a sum of parts, `sum` being the earlier one.
  void (*merge)(float* sum, const float* part, uint32_t dim);
  /// The sum of all parts as the result, with the head's sink (-infinity: none).
  void (*finish)(const float* sum, float sink, float* out, uint32_t dim);

  /// The position of the largest of `count` values, the lowest of equals; count where all are NaN.
  uint32_t (*largest)(const float* values, uint32_t count);
  /// See TopKArgs; of one row. Gives the sum of exp(y - the largest y).
  float (*top_k)(const float* logits, uint32_t count, uint32_t k, float multiplier, float softcap, TopEntries to);

  /// A step of a gated delta net over 16 columns of a head's state [key_dim][16] (DeltaNetArgs). out may be null.
  void (*delta_step)(float* state, uint32_t key_dim, const float* query, const float* key, const float* value,
                     float beta, float decay, float* out);
  /// The same of a scan.
  void (*scan_step)(float* state, uint32_t key_dim, const float* query, const float* key, const float* value,
                    float beta, float decay, float skip, float* out);

  /// For measurements: adds up `bytes` of memory, a multiple of 256, and does `steps` times 16 multiply-adds of a
  /// register; `lanes` says how many floats that has.
  float (*read_memory)(const void* memory, uint64_t bytes);
  float (*multiply_add)(uint64_t steps);
  uint32_t lanes;
};

extern const Kernels kernels_portable;
#if defined(__x86_64__)
extern const Kernels kernels_avx2, kernels_vnni, kernels_avx512;
#elif defined(__aarch64__)
extern const Kernels kernels_neon;
#endif

}  // namespace canopy::cpu
