#pragma once
// The ops of the engine: one argument struct each. Shapes are [rows, cols], row-major f32 unless said otherwise; W is
// the width of the op (rows of activations it works on). Formulas are per row; every backend must compute a row's
// result independently of W and of where the row stands in it, bit for bit (docs/architecture.md, "Numeric contract").

#include <cstdint>
#include <span>

#include "engine/compute/rows.h"
#include "engine/compute/types.h"

namespace canopy {

/// An RMS norm split in two: the writer of a panel multiplies by `weight` and leaves sums of squares, the reader
/// multiplies its results by 1 / sqrt(mean of squares + eps).
struct NormWrite {
  const Buffer* weight = nullptr;  // [cols]
};

/// x = scale * table[token], panel = x * norm.weight. A scale of 1 leaves the table's values as they are, bit for bit.
struct EmbedArgs {
  uint32_t width = 0;
  const Weight* table = nullptr;  // [vocab, cols]
  const Buffer* rows = nullptr;   // Row [W]
  Buffer* x = nullptr;            // [W, cols], the residual stream
  NormWrite norm;
  Panel* out = nullptr;  // [W, cols] with sums of squares
  float scale = 1;
};

/// out[w, offset + r] = scale(w) * sum_k weight[r, k] * in[w, k]; scale is the norm's when norm_eps > 0, else 1.
struct LinearArgs {
  uint32_t width = 0;
  const Weight* weight = nullptr;  // [rows, cols]
  const Panel* in = nullptr;       // [W, cols]
  float norm_eps = 0;
  Buffer* out = nullptr;  // [W, stride]
  uint32_t stride = 0;
  uint32_t offset = 0;
};

/// x[w, r] += sum_k weight[r, k] * in[w, k]; out = x * norm.weight; tap[w, offset + r] = x[w, r] where a tap is given.
struct LinearAddArgs {
  uint32_t width = 0;
  const Weight* weight = nullptr;  // [rows, cols]
  const Panel* in = nullptr;       // [W, cols]
  Buffer* x = nullptr;             // [W, rows]
  NormWrite norm;
  Panel* out = nullptr;   // [W, rows] with sums of squares
  Buffer* tap = nullptr;  // [W, tap_stride] or null
  uint32_t tap_stride = 0;
  uint32_t tap_offset = 0;
};

/// out[w, i] = silu(s * g_i) * (s * u_i), g and u the even and odd rows of a paired weight, s the norm's scale.
struct LinearSwigluArgs {
  uint32_t width = 0;
  const Weight* weight = nullptr;  // paired, [2 * ffn, cols]
  const Panel* in = nullptr;       // [W, cols]
  float norm_eps = 0;
  Panel* out = nullptr;  // [W, ffn], no sums of squares
};

/// Splits qkv into heads, applies the optional q/k norms and the rotation, writes q, and writes K and V to each row's
/// slot, rounded to the cache's type. The rotation table holds cos and sin per position and pair, computed in double
/// precision on the CPU. Without query heads (heads = 0) it stores K and V only: q and q_norm are null then.
struct RopeStoreArgs {
  uint32_t width = 0;
  const Buffer* qkv = nullptr;       // [W, (heads + 2 kv_heads) * head_dim]
  const Buffer* rows = nullptr;      // Row [W]
  const Buffer* rotation = nullptr;  // [context, head_dim / 2, 2]: cos, sin
  const Buffer* q_norm = nullptr;    // [head_dim] or null
  const Buffer* k_norm = nullptr;    // [head_dim] or null
  float norm_eps = 0;
  uint32_t heads = 0;  // of the queries
  KvShape shape;
  bool interleaved = false;  // pairs are (2i, 2i+1); otherwise (i, i + head_dim/2)
  KvLayer* cache = nullptr;
  Buffer* q = nullptr;  // [W, heads * head_dim]
};

/// The rows of `weights`, one after the other, times `in` are qkv; rope_store makes heads of it. A device may do both
/// at once, with the same bits, and leave heads.qkv as it was.
struct ProjectHeadsArgs {
  std::span<const Weight* const> weights;  // together [(heads + 2 kv_heads) * head_dim, cols]
  const Panel* in = nullptr;               // [W, cols]
  float in_norm_eps = 0;                   // 0: no norm
  Buffer* qkv = nullptr;                   // the buffer that heads.qkv names
  RopeStoreArgs heads;
};

/// Throws bad_input when the weights do not have the rows of the heads.
void check_heads(const ProjectHeadsArgs& args);

/// Which positions of its virtual sequence (see Row) a row sees at the far end.
enum class AttentionMask : uint32_t {
  causal,  // 0 ... its own
  block,   // 0 ... prefix + ancestor_count - 1, those after its own too
};

/// out[w, head] = softmax(scale * q . K) V over the row's virtual sequence (see Row). Positions fall into aligned
/// chunks of kAttentionChunk; each chunk gives (max, sum, output), and chunks merge in ascending order. With a window,
/// a row does not see the positions before position + 1 - window: itself and the window - 1 before it are left, beside
/// what the mask shows behind it. What is in the slots of hidden positions has no influence, even NaN.
struct AttentionArgs {
  uint32_t width = 0;
  const Buffer* q = nullptr;          // [W, heads * head_dim]
  const Buffer* rows = nullptr;       // Row [W]
  const Buffer* ancestors = nullptr;  // uint32 slots
  uint32_t heads = 0;                 // multiple of shape.kv_heads
  KvShape shape;
  float scale = 0;
  uint32_t max_positions = 0;  // no row has more keys than this
  const KvLayer* cache = nullptr;
  Panel* out = nullptr;  // [W, heads * head_dim]
  AttentionMask mask = AttentionMask::causal;
  uint32_t window = 0;  // positions; 0: no limit
};
inline constexpr uint32_t kAttentionChunk = 64;

/// out[i] = in[index[first + i]] for the values and their sums of squares: keeps the rows a head is wanted for.
struct SelectArgs {
  uint32_t width = 0;             // of in
  uint32_t count = 0;             // of out
  const Panel* in = nullptr;      // [W, cols]
  const Buffer* index = nullptr;  // uint32 [first + count], below W
  Panel* out = nullptr;           // [count, cols]
  uint32_t first = 0;
};

/// out[first_out + w] = {id, bits of the logit} of the largest logit of row w; ties go to the lowest id, NaN never wins
/// (a row of nothing but NaN gives id 0xFFFFFFFF).
struct ArgmaxArgs {
  uint32_t width = 0;
  const Buffer* logits = nullptr;  // [W, vocab]
  uint32_t vocab = 0;
  Buffer* out = nullptr;   // uint32 [first_out + W, 2]
  uint32_t first_out = 0;  // a head computed in chunks of rows leaves all its answers in one list
};

/// The k largest logits of each row, largest first, ties by the lowest id, and log sum exp of the whole row. A logit x
/// counts as y = softcap * tanh(multiplier * x / softcap), or multiplier * x where softcap is 0: order, values and sum
/// are of y. Row w goes to row first_out + w of the outputs.
struct TopKArgs {
  uint32_t width = 0;
  const Buffer* logits = nullptr;  // [W, vocab]
  uint32_t vocab = 0;
  uint32_t k = 0;                 // 1 ... kMaxTopK, at most vocab
  Buffer* ids = nullptr;          // uint32 [first_out + W, k]
  Buffer* values = nullptr;       // [first_out + W, k]
  Buffer* log_sum_exp = nullptr;  // [first_out + W]
  uint32_t first_out = 0;
  float multiplier = 1;  // finite, not 0
  float softcap = 0;     // 0: none; else positive
};
inline constexpr uint32_t kMaxTopK = 64;

/// out[i] = logits[row - first_row, token] for the pairs whose row lies in [first_row, first_row + rows): single logits
/// out of a list of rows that is computed in chunks. Elements of other pairs are left as they are.
struct PickArgs {
  uint32_t count = 0;  // of pairs
  uint32_t first_row = 0;
  uint32_t rows = 0;
  const Buffer* logits = nullptr;  // [rows, vocab]: rows first_row ... of the list
  uint32_t vocab = 0;
  const Buffer* pairs = nullptr;  // uint32 [count, 2]: row of the list, token below vocab
  Buffer* out = nullptr;          // [count]
};

/// out[to] = in[from] for each move. Moves to the same row must be the same move: a list may be filled up with one.
struct CopyRowsArgs {
  uint32_t count = 0;
  uint32_t cols = 0;
  const Buffer* in = nullptr;     // [rows, cols]
  const Buffer* moves = nullptr;  // uint32 [count, 2]: from, to
  Buffer* out = nullptr;          // [rows, cols], another buffer than in
};

/// panel = in * norm.weight with the sums of squares of `in`: what a product reads, from rows that no op left as a
/// panel. Without a weight the values go over as they are.
struct NormRowsArgs {
  uint32_t width = 0;
  const Buffer* in = nullptr;  // [W, cols]
  NormWrite norm;              // weight null: none
  Panel* out = nullptr;        // [W, cols] with sums of squares
};

/// Moves K and V between slots: slot to[i] gets what slot from[i] held before the op, even where the lists overlap.
struct KvMoveArgs {
  const Buffer* moves = nullptr;  // uint32 [count, 2]: from, to
  uint32_t count = 0;             // at most kMaxKvMoves
  KvShape shape;
  KvLayer* cache = nullptr;
};
inline constexpr uint32_t kMaxKvMoves = 64;

}  // namespace canopy
