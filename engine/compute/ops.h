#pragma once
// The ops of the engine: one argument struct each, and `Op`, any of them. Shapes are [rows, cols], row-major f32 unless
// said otherwise; W is the width of the op (rows of activations it works on). Formulas are per row; every backend must
// compute a row's result independently of W and of where the row stands in it, bit for bit (docs/architecture.md,
// "Numeric contract").
//
// Beside its operands each struct has its name, its price and the shapes it is printed with. A price counts the bytes
// of every operand once for each op, as if a cache held everything within an op and nothing between two ops: a weight
// counts with its size in the file, rows and tables with the part that the op reads or writes. Where the amount depends
// on the contents of buffers, the maximum is counted (attention: max_positions), of experts the expected number. FLOPs
// are those of products and norms, a multiply-add counting as two; exponentials, comparisons and conversions are not
// counted.

#include <algorithm>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "engine/compute/delta_net.h"
#include "engine/compute/experts.h"
#include "engine/compute/kv_slots.h"
#include "engine/compute/op_price.h"
#include "engine/compute/row_ops.h"
#include "engine/compute/rows.h"
#include "engine/compute/sampling.h"
#include "engine/compute/types.h"

namespace canopy {

/// Price of reading and multiplying in a product: the weight once and W rows of `cols`. Writing the results is not
/// included, each op adds that itself.
inline OpPrice product_price(const Weight& weight, uint64_t width) {
  const uint64_t elements = uint64_t{weight.rows()} * weight.cols();
  return {stored_bytes(weight) + word_bytes(width * weight.cols()), 2 * elements * width};
}

/// x = scale * table[token], activations = x * norm.weight. A scale of 1 leaves the table's values as they are, bit for
/// bit.
struct EmbedArgs {
  uint32_t width = 0;
  const Weight* table = nullptr;  // [vocab, cols]
  const Buffer* rows = nullptr;   // Row [W]
  Buffer* x = nullptr;            // [W, cols], the residual stream
  NormWrite norm;
  Activations* out = nullptr;  // [W, cols] with sums of squares
  float scale = 1;

  static constexpr const char* name = "embed";
  std::string shapes() const { return std::to_string(width) + " of " + describe(*table); }
  OpPrice price() const {
    // Bytes: a row of the table, the Row, x and the activations. FLOPs: x * scale, x * norm and the sum of squares.
    const uint64_t elements = uint64_t{width} * table->cols();
    return {stored_row_bytes(*table) * width + width * sizeof(Row) + word_bytes(2 * elements + table->cols()),
            (scale != 1 ? 4 : 3) * elements};
  }
};

/// out[w, offset + r] = scale(w) * sum_k weight[r, k] * in[w, k]; scale is the norm's when norm_eps > 0, else 1.
struct LinearArgs {
  uint32_t width = 0;
  const Weight* weight = nullptr;   // [rows, cols]
  const Activations* in = nullptr;  // [W, cols]
  float norm_eps = 0;
  Buffer* out = nullptr;  // [W, stride]
  uint32_t stride = 0;
  uint32_t offset = 0;

  static constexpr const char* name = "linear";
  std::string shapes() const { return std::to_string(width) + " x " + describe(*weight); }
  OpPrice price() const {
    return product_price(*weight, width) + OpPrice{word_bytes(uint64_t{width} * weight->rows()), 0};
  }
};

/// x[w, r] += sum_k weight[r, k] * in[w, k]; out = x * norm.weight; aux[w, offset + r] = x[w, r] where aux is given.
struct LinearAddArgs {
  uint32_t width = 0;
  const Weight* weight = nullptr;   // [rows, cols]
  const Activations* in = nullptr;  // [W, cols]
  Buffer* x = nullptr;              // [W, rows]
  NormWrite norm;
  Activations* out = nullptr;  // [W, rows] with sums of squares
  Buffer* aux = nullptr;       // [W, aux_stride] or null
  uint32_t aux_stride = 0;
  uint32_t aux_offset = 0;

  static constexpr const char* name = "linear_add";
  std::string shapes() const {
    return std::to_string(width) + " x " + describe(*weight) + (aux != nullptr ? ", with aux" : "");
  }
  OpPrice price() const {
    // Bytes: x read and written, the activations, aux. FLOPs: the sum, x * norm and the sum of squares.
    const uint64_t elements = uint64_t{width} * weight->rows();
    return product_price(*weight, width) +
           OpPrice{word_bytes((aux != nullptr ? 4 : 3) * elements + weight->rows()), 4 * elements};
  }
};

/// What the gates of a feed-forward go through: x times a factor between 0 and 1.
enum class GateFunction : uint32_t {
  silu,  // x / (1 + exp(-x))
  gelu,  // x / (1 + exp(-2 sqrt(2 / pi) (x + 0.044715 x^3))): the form with tanh of Hendrycks and Gimpel, "GELUs", 2016
};

/// out[w, i] = f(s * g_i) * (s * u_i), g and u the even and odd rows of a paired weight, s the norm's scale, f the
/// function of the gates.
struct LinearSwigluArgs {
  uint32_t width = 0;
  const Weight* weight = nullptr;   // paired, [2 * ffn, cols]
  const Activations* in = nullptr;  // [W, cols]
  float norm_eps = 0;
  Activations* out = nullptr;  // [W, ffn], no sums of squares
  GateFunction gate = GateFunction::silu;

  static constexpr const char* name = "linear_swiglu";
  std::string shapes() const {
    return std::to_string(width) + " x " + describe(*weight) + (gate == GateFunction::gelu ? ", gelu" : "");
  }
  OpPrice price() const {
    return product_price(*weight, width) + OpPrice{word_bytes(uint64_t{width} * (weight->rows() / 2)), 0};
  }
};

/// Splits qkv into heads, applies the optional q/k norms and the rotation, writes q, and writes K and V to each row's
/// slot, rounded to the cache's type. The rotation table holds cos and sin per position and pair, computed in double
/// precision on the CPU. A row without a slot stores nothing, and its q means nothing. Without query heads (heads = 0)
/// it stores K and V only: q and q_norm are null then.
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

  /// Elements of a row of qkv.
  uint32_t elements() const { return (heads + 2 * shape.kv_heads) * shape.head_dim; }

  static constexpr const char* name = "rope_store";
  std::string shapes() const {
    return std::to_string(width) + " rows, " + std::to_string(heads) + " heads, " + describe(shape);
  }
  OpPrice price() const {
    // qkv read, q, K and V written, a row of the rotation table for each row; 6 FLOPs for each pair of q and K.
    const uint64_t kv = uint64_t{shape.kv_heads} * shape.head_dim;
    const uint64_t q = uint64_t{heads} * shape.head_dim;
    return {width * (word_bytes(q + 2 * kv) + word_bytes(q) + 2 * slot_bytes(shape) + sizeof(Row) +
                     word_bytes(shape.head_dim)),
            width * 3 * (q + kv)};
  }
};

/// Multiplies `in` by the stacked `weights` to get qkv, then applies rope_store to it. A device may do both in one
/// kernel, with the same bits, and then leaves the buffer heads.qkv unwritten.
struct ProjectHeadsArgs {
  std::vector<const Weight*> weights;  // together [(heads + 2 kv_heads) * head_dim, cols]
  const Activations* in = nullptr;     // [W, cols]
  float in_norm_eps = 0;               // 0: no norm
  Buffer* qkv = nullptr;               // the buffer that heads.qkv names
  RopeStoreArgs heads;

  static constexpr const char* name = "project_heads";
  std::string shapes() const {
    std::string text = std::to_string(heads.width) + " x";
    for (const Weight* weight : weights) text += " " + describe(*weight);
    return text + ", " + std::to_string(heads.heads) + " heads, " + describe(heads.shape);
  }
  OpPrice price() const {
    // As if fused: qkv is neither written nor read.
    OpPrice price = heads.price();
    price.bytes -= word_bytes(uint64_t{heads.width} * heads.elements());
    for (const Weight* weight : weights) price = price + product_price(*weight, heads.width);
    if (!weights.empty()) price.bytes -= (weights.size() - 1) * word_bytes(uint64_t{heads.width} * in->cols());
    return price;
  }
};

/// Throws bad_input when the weights do not have the rows of the heads.
void check_heads(const ProjectHeadsArgs& args);

inline constexpr uint32_t kAttentionChunk = 64;  // positions
static_assert(kAttentionChunk == kPagePositions, "a chunk lies in one page");

/// The last position of its virtual sequence (see Row) that a row sees.
enum class AttentionMask : uint32_t {
  causal,  // 0 ... its own
  block,   // 0 ... prefix + ancestor_count - 1, including positions after its own
};

/// out[w, head] = softmax(scale * q . K) V over the row's virtual sequence (see Row); zeros where it sees nothing.
/// Positions fall into aligned chunks of kAttentionChunk; each chunk gives (max, sum, output), and chunks merge in an
/// order that their positions fix. With a window, a row sees itself and the window - 1 positions before it, and under a
/// block mask also those after it. The contents of slots that a row does not see have no influence on its result, even
/// if they are NaN. A sink is a score of its head that counts in the sum of the softmax and has no value: it is merged
/// last.
struct AttentionArgs {
  uint32_t width = 0;
  const Buffer* q = nullptr;          // [W, heads * head_dim]
  const Buffer* rows = nullptr;       // Row [W]
  const Buffer* ancestors = nullptr;  // uint32 slots
  const Buffer* pages = nullptr;      // uint32 [max_positions / kPagePositions, rounded up]: the page table
  uint32_t heads = 0;                 // multiple of shape.kv_heads
  KvShape shape;
  float scale = 0;
  uint32_t max_positions = 0;  // no row has more keys than this
  const KvLayer* cache = nullptr;
  Activations* out = nullptr;  // [W, heads * head_dim]
  AttentionMask mask = AttentionMask::causal;
  uint32_t window = 0;            // positions; 0: no limit
  const Buffer* sinks = nullptr;  // [heads], as they are after the scale; null: none
  float softcap = 0;              // a score s counts as softcap * tanh(s / softcap); 0: as it is

  static constexpr const char* name = "attention";
  std::string shapes() const {
    return std::to_string(width) + " rows, " + std::to_string(heads) + " heads, " + describe(shape) + ", up to " +
           std::to_string(keys()) + " keys";
  }
  OpPrice price() const {
    // Two products of each query with each key; K and V of the longest row once, as rows share their prefix.
    const uint64_t q = uint64_t{heads} * shape.head_dim;
    const uint64_t kv = keys() * slot_bytes(shape);
    return {word_bytes(2 * width * q) + 2 * kv + width * sizeof(Row), 4 * uint64_t{width} * keys() * q};
  }
  /// Largest number of keys that a row may have.
  uint64_t keys() const {
    return window > 0 ? std::min<uint64_t>(uint64_t{window} + kAttentionChunk, max_positions) : max_positions;
  }
};

/// out[i] = in[index[first + i]] for the values and their sums of squares: picks the rows whose logits are needed.
struct SelectArgs {
  uint32_t width = 0;               // of in
  uint32_t count = 0;               // of out
  const Activations* in = nullptr;  // [W, cols]
  const Buffer* index = nullptr;    // uint32 [first + count], below W
  Activations* out = nullptr;       // [count, cols]
  uint32_t first = 0;

  static constexpr const char* name = "select";
  std::string shapes() const {
    return std::to_string(count) + " of " + std::to_string(width) + " rows of " + std::to_string(in->cols());
  }
  OpPrice price() const { return {word_bytes(uint64_t{count} * (2 * in->cols() + 1)), 0}; }
};

/// out[first_out + w] = {id, bits of the logit} of the largest logit of row w; ties go to the lowest id, NaN never wins
/// (a row of nothing but NaN gives id 0xFFFFFFFF).
struct ArgmaxArgs {
  uint32_t width = 0;
  const Buffer* logits = nullptr;  // [W, vocab]
  uint32_t vocab = 0;
  Buffer* out = nullptr;   // uint32 [first_out + W, 2]
  uint32_t first_out = 0;  // set when logits are computed in chunks of rows, so that all results land in one list

  static constexpr const char* name = "argmax";
  std::string shapes() const { return std::to_string(width) + " rows of " + std::to_string(vocab); }
  OpPrice price() const { return {word_bytes(uint64_t{width} * (vocab + 2)), 0}; }
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

  static constexpr const char* name = "top_k";
  std::string shapes() const {
    return std::to_string(k) + " of " + std::to_string(width) + " rows of " + std::to_string(vocab);
  }
  OpPrice price() const { return {word_bytes(uint64_t{width} * (vocab + 2 * k + 1)), 0}; }
};
inline constexpr uint32_t kMaxTopK = 64;

/// out[first_row + w] = the token drawn after row w of the logits, or kNoToken where an adjusted logit is NaN or +inf,
/// where all are -inf and where the row says so; the logits of such a row stay as they are. Defined as RowSampler::draw
/// (engine/compute/row_sampler.h), bit for bit: bias, penalties, temperature, top-k, top-p, min-p, then
/// argmax(log p + G). How is read from buffers; `random`, `filtered` and `adjustments` say what the settings there may
/// ask for. The text so far ends with the path to the row: row w is rows[first_row + w], and rows without a parent have
/// their token in the table of adjustments where it counts. The token is drawn at settings.position plus the row's
/// number of ancestors in the list.
struct SampleArgs {
  uint32_t width = 0;
  Buffer* logits = nullptr;  // [W, vocab]; those that were adjusted stay so
  uint32_t vocab = 0;
  const Buffer* settings = nullptr;     // SamplingWords
  const Buffer* rows = nullptr;         // SampledRow [first_row + W], no deeper than kMaxSampledDepth
  const Buffer* adjustments = nullptr;  // TokenAdjustment [most_adjustments], ascending by token; null: none
  uint32_t most_adjustments = 0;        // of which settings.adjustments count
  bool random = false;                  // the temperature is not 0
  bool filtered = false;                // top-k or top-p is on; only where random
  Buffer* out = nullptr;                // uint32 [first_row + W]
  uint32_t first_row = 0;  // set when logits are computed in chunks of rows, so that all results land in one list

  static constexpr const char* name = "sample";
  std::string shapes() const {
    return std::to_string(width) + " rows of " + std::to_string(vocab) + (filtered ? ", filtered" : "") +
           (adjustments != nullptr ? ", up to " + std::to_string(most_adjustments) + " adjusted" : "");
  }
  OpPrice price() const {
    const uint64_t adjusted = adjustments != nullptr ? most_adjustments : 0;
    return {word_bytes(uint64_t{width} * (vocab + 3 + 2 * adjusted) + 3 * adjusted), 0};
  }
};
inline constexpr uint32_t kMaxSampledDepth = 64;

/// out[i] = logits[row - first_row, token] for the pairs whose row lies in [first_row, first_row + rows): reads single
/// logits where the logits of a list of rows are computed in chunks. Elements of other pairs stay unchanged.
struct PickArgs {
  uint32_t count = 0;  // of pairs
  uint32_t first_row = 0;
  uint32_t rows = 0;
  const Buffer* logits = nullptr;  // [rows, vocab]: rows first_row ... of the list
  uint32_t vocab = 0;
  const Buffer* pairs = nullptr;  // uint32 [count, 2]: row of the list, token below vocab
  Buffer* out = nullptr;          // [count]

  static constexpr const char* name = "pick";
  std::string shapes() const {
    return std::to_string(count) + " of " + std::to_string(rows) + " rows of " + std::to_string(vocab);
  }
  OpPrice price() const { return {word_bytes(uint64_t{count} * 4), 0}; }
};

/// Moves K and V of all layers between slots: slot to[i] gets what slot from[i] held before the op, even where the
/// lists overlap. A list may be padded by repeating a move.
struct KvMoveArgs {
  const Buffer* moves = nullptr;  // uint32 [count, 2]: from, to
  uint32_t count = 0;             // at most kMaxKvMoves
  KvShape shape;
  KvCache* cache = nullptr;

  static constexpr const char* name = "kv_move";
  std::string shapes() const {
    return std::to_string(count) + " slots of " + std::to_string(cache->layers()) + " layers, " + describe(shape);
  }
  OpPrice price() const {
    const uint64_t slot = 2 * slot_bytes(shape);
    return {count * (2 * slot * cache->layers() + word_bytes(2)), 0};
  }
};
inline constexpr uint32_t kMaxKvMoves = 64;

/// One op with its arguments. The buffers and weights it points to must outlive the Commands compiled from it.
using Op =
    std::variant<EmbedArgs, LinearArgs, LinearAddArgs, LinearSwigluArgs, RouteArgs, ExpertSwigluArgs, ExpertAddArgs,
                 AddBiasArgs, RopeStoreArgs, ProjectHeadsArgs, AttentionArgs, SelectArgs, ArgmaxArgs, TopKArgs,
                 SampleArgs, PickArgs, CopyRowsArgs, NormRowsArgs, KvMoveArgs, DeltaInputsArgs, DeltaNetArgs,
                 GatedNormArgs, GateArgs, NormAddArgs, CapLogitsArgs, CountExpertsArgs>;

}  // namespace canopy
