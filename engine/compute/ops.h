#pragma once
// The ops of the engine, one argument struct each with its price, and recordings of them: lists of ops in the order
// in which they run.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "engine/compute/kv_slots.h"
#include "engine/compute/rows.h"
#include "engine/compute/sampling.h"
#include "engine/compute/types.h"

namespace canopy {

// Each op has an argument struct; `Op` is any of them. Shapes are [rows, cols], row-major f32 unless said otherwise; W
// is the width of the op (rows of activations it works on). Formulas are per row; every backend must compute a row's
// result independently of W and of where the row stands in it, bit for bit (docs/architecture.md, "Numeric contract").
//
// Beside its operands each struct has its name, its price and the shapes it is printed with. A price counts the bytes
// of every operand once for each op, as if a cache held everything within an op and nothing between two ops: a weight
// counts with its size in the file, rows and tables with the part that the op reads or writes. Where the amount depends
// on the contents of buffers, the maximum is counted (attention: max_positions), of experts the expected number. FLOPs
// are those of products and norms, a multiply-add counting as two; exponentials, comparisons and conversions are not
// counted.

/// Lower estimate of the memory traffic and the arithmetic of an op.
struct OpPrice {
  uint64_t bytes = 0;  // read and written
  uint64_t flops = 0;
  bool operator==(const OpPrice&) const = default;
};
inline OpPrice operator+(const OpPrice& a, const OpPrice& b) {
  return {a.bytes + b.bytes, a.flops + b.flops};
}

/// Bytes of `count` floats or other words.
inline uint64_t word_bytes(uint64_t count) {
  return count * 4;
}

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

/// Splits qkv into heads, applies the optional norms, to q and K also the rotation, writes q, and writes K and V to
/// each row's slot, rounded to the cache's type. The rotation table holds cos and sin per position and pair, computed
/// in double precision on the CPU. A row without a slot stores nothing, and its q means nothing. Without query heads
/// (heads = 0) it stores K and V only: q and q_norm are null then; without a cache (shape.kv_heads = 0) it writes q
/// only. A latent cache has no values: neither have qkv and v_norm.
struct RopeStoreArgs {
  uint32_t width = 0;
  const Buffer* qkv = nullptr;       // [W, (heads + 2 kv_heads) * head_dim]; latent: (heads + kv_heads)
  const Buffer* rows = nullptr;      // Row [W]
  const Buffer* rotation = nullptr;  // [context, head_dim / 2, 2]: cos, sin
  uint32_t query_offset = 0;         // a query is turned by the table's row of its position plus this
  const Buffer* q_norm = nullptr;    // [head_dim] or null
  const Buffer* k_norm = nullptr;    // [head_dim] or null
  const Buffer* v_norm = nullptr;    // [head_dim] or null
  float norm_eps = 0;
  uint32_t heads = 0;  // of the queries
  KvShape shape;
  bool interleaved = false;  // pairs are (2i, 2i+1); otherwise (i, i + head_dim/2)
  KvLayer* cache = nullptr;  // null: there are no K and V
  Buffer* q = nullptr;       // [W, heads * head_dim]

  /// Heads of a row of qkv, and their elements.
  uint32_t row_heads() const { return heads + shape.planes() * shape.kv_heads; }
  uint32_t elements() const { return row_heads() * shape.head_dim; }

  static constexpr const char* name = "rope_store";
  std::string shapes() const {
    return std::to_string(width) + " rows, " + std::to_string(heads) + " heads, " + describe(shape);
  }
  OpPrice price() const {
    // qkv read, q, K and V written, a row of the rotation table for each row, or one for q and one for K; 6 FLOPs for
    // each pair of q and K.
    const uint64_t kv = uint64_t{shape.kv_heads} * shape.head_dim;
    const uint64_t q = uint64_t{heads} * shape.head_dim;
    const uint64_t planes = shape.planes(), turns = query_offset != 0 && q != 0 && kv != 0 ? 2 : 1;
    return {width * (word_bytes(q + planes * kv) + word_bytes(q) + planes * slot_bytes(shape) + sizeof(Row) +
                     turns * word_bytes(shape.head_dim)),
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

/// Throws bad_input when the weights do not have the rows of the heads, or the cache is a latent one.
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
/// last. Values of a latent cache are the first elements of its keys.
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
  Activations* out = nullptr;  // [W, heads * shape.value_dim()]
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
    const uint64_t q = uint64_t{heads} * shape.head_dim, out_cols = uint64_t{heads} * shape.value_dim();
    const uint64_t kv = keys() * slot_bytes(shape);
    return {word_bytes(width * (q + out_cols)) + shape.planes() * kv + width * sizeof(Row),
            2 * uint64_t{width} * keys() * (q + out_cols)};
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
/// (engine/compute/sampling.h), bit for bit: bias, penalties, temperature, top-k, top-p, min-p, then
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
    const uint64_t slot = shape.planes() * slot_bytes(shape);
    return {count * (2 * slot * cache->layers() + word_bytes(2)), 0};
  }
};
inline constexpr uint32_t kMaxKvMoves = 64;

// Ops on the rows of a pass, each by itself: what stands between two products and is part of neither.

/// x[w, c] += bias[c].
struct AddBiasArgs {
  uint32_t width = 0;
  uint32_t cols = 0;
  const Buffer* bias = nullptr;  // [cols]
  Buffer* x = nullptr;           // [W, cols]

  static constexpr const char* name = "add_bias";
  std::string shapes() const { return std::to_string(width) + " rows of " + std::to_string(cols); }
  OpPrice price() const {
    const uint64_t elements = uint64_t{width} * cols;
    return {word_bytes(2 * elements + cols), elements};
  }
};

/// out[to] = in[from] for each move. Two moves to the same row must be identical, so a list can be padded by repeating
/// a move.
struct CopyRowsArgs {
  uint32_t count = 0;
  uint32_t cols = 0;
  const Buffer* in = nullptr;     // [rows, cols]
  const Buffer* moves = nullptr;  // uint32 [count, 2]: from, to
  Buffer* out = nullptr;          // [rows, cols], another buffer than in

  static constexpr const char* name = "copy_rows";
  std::string shapes() const { return std::to_string(count) + " rows of " + std::to_string(cols); }
  OpPrice price() const { return {word_bytes(uint64_t{count} * (2 * cols + 2)), 0}; }
};

/// activations = in * norm.weight, with the sums of squares of `in`: turns rows of a plain buffer into activations that
/// a product can read. Without a weight the values are copied unchanged.
struct NormRowsArgs {
  uint32_t width = 0;
  const Buffer* in = nullptr;  // [W, cols]
  NormWrite norm;              // weight null: none
  Activations* out = nullptr;  // [W, cols] with sums of squares

  static constexpr const char* name = "norm_rows";
  std::string shapes() const { return std::to_string(width) + " rows of " + std::to_string(out->cols()); }
  OpPrice price() const {
    const uint64_t elements = uint64_t{width} * out->cols();
    const bool has_norm = norm.weight != nullptr;
    return {word_bytes(2 * elements + (has_norm ? out->cols() : 0)), (has_norm ? 3 : 2) * elements};
  }
};

/// x[w] = x_scale * (x[w] + in[w] / sqrt(mean of squares of in[w] + eps) * weight); out = x * norm.weight; aux[w,
/// offset
/// + c] = aux_scale * x[w, c] where aux is given. What a mixer or a feed-forward gives goes through a norm of its own
/// before it is added. An x_scale of 1 changes no bit.
struct NormAddArgs {
  uint32_t width = 0;
  const Buffer* in = nullptr;      // [W, cols]
  const Buffer* weight = nullptr;  // [cols]
  float eps = 0;
  Buffer* x = nullptr;  // [W, cols], the residual stream
  NormWrite norm;
  Activations* out = nullptr;  // [W, cols] with sums of squares
  Buffer* aux = nullptr;       // [W, aux_stride] or null
  uint32_t aux_stride = 0;
  uint32_t aux_offset = 0;
  float aux_scale = 1;
  float x_scale = 1;

  static constexpr const char* name = "norm_add";
  std::string shapes() const {
    return std::to_string(width) + " rows of " + std::to_string(out->cols()) + (aux != nullptr ? ", with aux" : "");
  }
  OpPrice price() const {
    // Bytes: in, x read and written, the activations, aux, both weights. FLOPs: the sums of squares of in and of x, the
    // scale, both weights and the sum.
    const uint64_t cols = out->cols(), elements = uint64_t{width} * cols;
    return {word_bytes((aux != nullptr ? 5 : 4) * elements + 2 * cols),
            ((aux != nullptr ? 9 : 8) + (x_scale != 1 ? 1 : 0)) * elements};
  }
};

/// logits[w, t] = cap * tanh(logits[w, t] / cap), in place; a NaN stays one.
struct CapLogitsArgs {
  uint32_t width = 0;
  Buffer* logits = nullptr;  // [W, vocab]
  uint32_t vocab = 0;
  float cap = 0;  // positive

  static constexpr const char* name = "cap_logits";
  std::string shapes() const { return std::to_string(width) + " rows of " + std::to_string(vocab); }
  OpPrice price() const {
    const uint64_t elements = uint64_t{width} * vocab;
    return {word_bytes(2 * elements), 2 * elements};
  }
};

// The ops of a mixture of experts: a router chooses some of a layer's experts for each row, and what they make of the
// row is added up.

/// Most experts of a layer, and of a row, that the ops of mixtures take.
inline constexpr uint32_t kMaxExperts = 1024, kMaxUsedExperts = 64;

/// A layer's experts: how many there are, and through how many each row goes. `shared`: each row also goes through a
/// further one, a dense feed-forward, for whose share the router has a row of its own, behind the others; without
/// `shared_gate` it has none, and the share is 1.
struct ExpertCounts {
  uint32_t all = 0;   // 1 ... kMaxExperts
  uint32_t used = 0;  // 1 ... kMaxUsedExperts, at most all
  bool shared = false;
  bool shared_gate = true;

  /// Words of a bit for each.
  uint32_t touched_words() const { return (all + 31) / 32; }
  /// Rows of the router.
  uint32_t router_rows() const { return all + (shared && shared_gate ? 1 : 0); }
  /// Shares of a row of the pass.
  uint32_t row_shares() const { return used + (shared ? 1 : 0); }

  /// How many different ones `width` rows go through on average if each chooses evenly: all (1 - (1 - used / all)^W).
  double touched(uint32_t width) const { return all * (1 - std::pow(1 - static_cast<double>(used) / all, width)); }
  /// How many experts' weights `width` such rows would read again, if each read its own.
  double read_again(uint32_t width) const { return static_cast<double>(width) * used - touched(width); }
  /// Tiles of up to `columns` pairs of a row and one of its experts, each tile of one expert, that there have to be
  /// room for: at most so many experts have one that is not full.
  uint32_t most_tiles(uint32_t pairs, uint32_t columns) const { return (pairs < all ? pairs : all) + pairs / columns; }
  bool operator==(const ExpertCounts&) const = default;
};
/// Experts whose weights rows would read again from which on it is worth a step to group the rows by their experts.
inline constexpr double kEnoughReadAgain = 4;
/// Throws bad_input, with the op's name in front, for counts out of their bounds.
void check_experts(const ExpertCounts& experts, const char* op);
/// Most groups of experts of a router.
inline constexpr uint32_t kMaxExpertGroups = 256;
struct RouteArgs;
/// The same of a router, its groups included.
void check_route(const RouteArgs& args);
/// "8 of 128 experts", "8 of 256 experts and a shared one"
std::string describe(const ExpertCounts& experts);

/// Price of the products of all rows with the experts that each has chosen, whose weights lie one below the other in
/// `weight`; as many are counted as rows touch that choose evenly.
inline OpPrice expert_price(const Weight& weight, const ExpertCounts& experts, uint32_t width) {
  const double share = experts.touched(width) / experts.all;
  const uint64_t elements = uint64_t{weight.rows()} * weight.cols() / experts.all;
  return {static_cast<uint64_t>(share * static_cast<double>(stored_bytes(weight))),
          2 * elements * experts.used * width};
}

/// The experts that each row goes through, and what each counts. logit[w, e] = scale(w) * sum_k router[e, k] * in[w,
/// k], in f32 on every device, as a choice hangs on it; scale is the norm's. chosen[w] = the experts of the largest
/// logits, largest first, ties to the lower one, NaN below all numbers. shares[w, i] = exp(logit of chosen[w, i]) over
/// the sum of these exponentials, of the chosen ones where `of_chosen`, else of all; times `factor` and
/// scales[chosen[w, i]] where there are scales. With a shared expert, logit[w, all] is of its row, which nothing
/// chooses, and shares[w, used] = 1 / (1 + exp(-logit[w, all])), or 1 without a gate. Where `touched` is given, the
/// bits of the experts are set there that rows with ancestors go through; those that are set stay so.
///
/// With a sigmoid (DeepSeek-AI, "DeepSeek-V3 Technical Report", 2024) the experts' scores are 1 / (1 + exp(-logit)),
/// and those are chosen whose scores plus choice_bias are the largest; of several groups of neighbouring experts in
/// those `groups_used` alone in which the sums of the two largest are the largest, ties to the lower one. Shares are
/// the scores, over their sum plus 1e-20 where `of_chosen`.
struct RouteArgs {
  uint32_t width = 0;
  ExpertCounts experts;
  const Buffer* router = nullptr;   // [router_rows(), cols]
  const Activations* in = nullptr;  // [W, cols]
  float norm_eps = 0;               // 0: no norm
  bool of_chosen = true;
  Buffer* logits = nullptr;        // [W, router_rows()]
  Buffer* chosen = nullptr;        // uint32 [W, used]
  Buffer* shares = nullptr;        // [W, row_shares()]
  const Buffer* bias = nullptr;    // [router_rows()], added to the logits of each row; null: none
  const Buffer* scales = nullptr;  // [all], of the shares; null: none
  const Buffer* rows = nullptr;    // Row [W], where touched
  Buffer* touched = nullptr;       // uint32 [layer + 1, touched_words()]: bit e mod 32 of word e / 32; or null
  uint32_t layer = 0;              // whose words
  float factor = 1;                // of the shares, but of a shared expert's
  bool sigmoid = false;
  const Buffer* choice_bias = nullptr;   // [all], with a sigmoid; null: none
  uint32_t groups = 1, groups_used = 1;  // of all / groups experts, at least 2 in several; with a sigmoid

  static constexpr float kLeastSum = 1e-20f;

  static constexpr const char* name = "route";
  std::string shapes() const {
    return std::to_string(width) + " rows of " + std::to_string(in->cols()) + ", " + describe(experts);
  }
  OpPrice price() const {
    const uint64_t logits = experts.router_rows(), products = logits * in->cols(), rows = width;
    return {word_bytes(products + rows * (in->cols() + 2 * logits + experts.used + experts.row_shares())),
            2 * rows * products};
  }
};

/// counts[l] = the bits that are set in touched[l], which are 0 afterwards: how many different experts of each layer
/// the rows of a pass have gone through.
struct CountExpertsArgs {
  uint32_t layers = 0;
  ExpertCounts experts;
  Buffer* touched = nullptr;  // uint32 [layers, touched_words()]
  Buffer* counts = nullptr;   // uint32 [layers]

  static constexpr const char* name = "count_experts";
  std::string shapes() const { return std::to_string(layers) + " layers of " + describe(experts); }
  OpPrice price() const { return {word_bytes(uint64_t{layers} * (2 * experts.touched_words() + 1)), 0}; }
};

/// What a clamped gate is multiplied by in its sigmoid (gpt-oss).
inline constexpr float kClampedSlope = 1.702f;

/// linear_swiglu with the experts of each row: out[w * used + i, f] = f(s * g) * (s * u), g and u the products of
/// rows 2 f and 2 f + 1 of expert chosen[w, i] with in[w]. Each is summed as if it were alone, so that it does not
/// matter which rows have chosen the same expert. A bias is added to s * g and s * u. With a limit l > 0 the result is
/// (u' + 1) * g' * sigmoid(kClampedSlope * g'), g' = min(g, l) and u' = u between -l and l.
struct ExpertSwigluArgs {
  uint32_t width = 0;
  ExpertCounts experts;
  const Weight* weight = nullptr;   // [all * 2 * ffn, cols]: paired, expert after expert
  const Activations* in = nullptr;  // [W, cols]
  float norm_eps = 0;
  const Buffer* chosen = nullptr;          // uint32 [W, used], each below `all`
  Activations* out = nullptr;              // [W * used, ffn], no sums of squares
  const Buffer* bias = nullptr;            // [all * 2 * ffn], of each row of the weight; null: none
  float limit = 0;                         // 0: none
  GateFunction gate = GateFunction::silu;  // where there is no limit

  /// Rows of the weight that an expert has.
  uint32_t expert_rows() const { return weight->rows() / experts.all; }

  static constexpr const char* name = "expert_swiglu";
  std::string shapes() const { return std::to_string(width) + " x " + describe(*weight) + ", " + describe(experts); }
  OpPrice price() const {
    const uint64_t read = uint64_t{width} * (weight->cols() + experts.used);
    const uint64_t written = uint64_t{width} * experts.used * (expert_rows() / 2);
    return expert_price(*weight, experts, width) + OpPrice{word_bytes(read + written), 0};
  }
};

/// linear_add with the experts of each row: x[w, r] += sum over i, in order, of shares[w, i] * products[w, i, r], where
/// products[w, i, r] is that of row r of expert chosen[w, i] with in[w * used + i], plus its bias, and, last, shares[w,
/// used] * shared[w, r] where there is a shared expert; out = x * norm.weight; aux as there. Without x the products are
/// all that it makes: so heads that each have a matrix of their own multiply by it, as rows that have chosen it.
struct ExpertAddArgs {
  uint32_t width = 0;
  ExpertCounts experts;
  const Weight* weight = nullptr;   // [all * rows, cols]: expert after expert
  const Activations* in = nullptr;  // [W * used, cols]
  const Buffer* chosen = nullptr;   // uint32 [W, used], each below `all`
  const Buffer* shares = nullptr;   // [W, row_shares()]; null without x, as what follows but for products and bias
  const Buffer* shared = nullptr;   // [W, rows], what the shared expert makes of the rows; null where there is none
  Buffer* products = nullptr;       // [W, used, rows]
  Buffer* x = nullptr;              // [W, rows]
  NormWrite norm;
  Activations* out = nullptr;  // [W, rows] with sums of squares
  Buffer* aux = nullptr;       // [W, aux_stride] or null
  uint32_t aux_stride = 0;
  uint32_t aux_offset = 0;
  const Buffer* bias = nullptr;  // [all * rows], of each row of the weight; null: none

  /// Rows of the weight that an expert has: the width of x.
  uint32_t expert_rows() const { return weight->rows() / experts.all; }

  static constexpr const char* name = "expert_add";
  std::string shapes() const {
    return std::to_string(width) + " x " + describe(*weight) + ", " + describe(experts) +
           (x == nullptr     ? ", products alone"
            : aux != nullptr ? ", with aux"
                             : "");
  }
  OpPrice price() const {
    // Bytes: the products written and read, x read and written, the activations, aux. FLOPs: shares, x * norm and the
    // sum of squares.
    const uint64_t elements = uint64_t{width} * expert_rows(), used = experts.used, shares = experts.row_shares();
    if (x == nullptr) {
      return expert_price(*weight, experts, width) +
             OpPrice{word_bytes(width * used * (uint64_t{weight->cols()} + 1) + used * elements), 0};
    }
    const uint64_t read = width * (used * (uint64_t{weight->cols()} + 1) + shares);
    return expert_price(*weight, experts, width) +
           OpPrice{word_bytes(read + (used + shares + (aux != nullptr ? 4 : 3)) * elements + expert_rows()),
                   (2 * shares + 4) * elements};
  }
};

// The ops of two recurrences: a gated delta net (Yang et al., "Gated Delta Networks", 2024), and a scan, the state
// space model of Mamba-2 (Dao and Gu, "Transformers are SSMs", 2024), which does not correct what it has kept.
//
// Each value head has a state S [key_dim, value_dim]. A row with query q, key k, value v, decay d and beta b makes of
// the state of the row before it, its parent:
//
//   delta net:  S <- d S;  u = b (v - S^T k);  S <- S + k u^T;  out = S^T q
//   scan:       S <- d S;  u = b v;            S <- S + k u^T;  out = S^T q + skip v
//
// In Mamba-2's words a scan's queries are C, its keys B, its values x and its betas dt.
//
// Rows of a pass form a forest: a row's parent is a row of the pass, or the text behind which the pass stands. How they
// are gone through is a list of steps, made on the host: parents come first, and where a row does not follow its
// parent, the state is taken back from where the parent's step has put it. The order changes no bit of any row.

struct DeltaShape {
  uint32_t key_heads = 0;    // of queries and keys
  uint32_t value_heads = 0;  // a multiple of key_heads
  uint32_t key_dim = 0;      // a multiple of 4, at most kMostKeyDim
  uint32_t value_dim = 0;    // a multiple of 4
  uint32_t taps = 0;         // of the convolution, its row included: 2 ... kMostTaps
  bool tiled = false;        // value head h reads key head h % key_heads; otherwise h / (value_heads / key_heads)
  bool corrects = true;      // false: a scan

  static constexpr uint32_t kMostKeyDim = 128, kMostValueDim = 1024, kMostTaps = 8;

  uint32_t keys() const { return key_heads * key_dim; }
  uint32_t values() const { return value_heads * value_dim; }
  /// Of the convolution: queries, keys and values of all heads.
  uint32_t channels() const { return 2 * keys() + values(); }
  /// Elements of a row: the channels, then two numbers for each value head; rounded up to a multiple of 4.
  uint32_t row_elements() const { return (channels() + 2 * value_heads + 3) / 4 * 4; }
  /// The numbers of value heads that stand behind the channels of what is prepared: b and a, of a scan a alone.
  uint32_t head_inputs() const { return (corrects ? 2 : 1) * value_heads; }
  uint64_t state_elements() const { return uint64_t{values()} * key_dim; }
  uint64_t tail_elements() const { return uint64_t{taps - 1} * channels(); }
  uint32_t key_head(uint32_t value_head) const {
    return tiled ? value_head % key_heads : value_head / (value_heads / key_heads);
  }
  bool operator==(const DeltaShape&) const = default;
};

/// "16 key heads of 128, 48 value heads of 128, 4 taps", and ", scanned" of a scan.
std::string describe(const DeltaShape& shape);
/// Throws bad_input, naming the op, for a shape that breaks what the members say.
void check_delta_shape(const DeltaShape& shape, const char* op);

/// What the recurrence reads of each step's row: queries and keys, values, and what each head forgets and takes.
///   x[c] = silu(sum_t taps[c, t] * window[t, c] + conv_bias[c]),  the window being the inputs of the row's last
///          ancestors and, last, its own; beyond the rows of the pass those that the text's tail has
///   query head: x / (sqrt(sum x^2 + eps) sqrt(key_dim));  key head: x / sqrt(sum x^2 + eps);  values, and all of a
///          scan: x
///   decay[h] = exp(rate[h] * softplus(a[h] + bias[h]));  beta[h] = 1 / (1 + exp(-b[h])), of a scan that softplus
/// A step that keeps a state (`to` not spare) also writes its tail, the inputs of the last taps - 1 rows, oldest first;
/// no step may take what another keeps.
struct DeltaInputsArgs {
  uint32_t width = 0;             // steps
  uint32_t rows = 0;              // R: that `in` and `out` have
  const Buffer* in = nullptr;     // [R, row_elements]: queries, keys, values, b, a; of a scan without b
  const Buffer* steps = nullptr;  // DeltaStep [W]
  DeltaShape shape;
  const Buffer* taps = nullptr;       // [channels, taps], the row's own last
  const Buffer* bias = nullptr;       // [value_heads]
  const Buffer* rate = nullptr;       // [value_heads], negative
  Buffer* tails = nullptr;            // [kept, taps - 1, channels]
  Buffer* out = nullptr;              // [R, row_elements]: queries, keys, values, beta, decay; of rows with a step
  const Buffer* conv_bias = nullptr;  // [channels], or null

  static constexpr float kEps = 1e-6f;

  static constexpr const char* name = "delta_inputs";
  std::string shapes() const { return std::to_string(width) + " rows, " + describe(shape); }
  OpPrice price() const {
    // Rows read and written, the taps, the tail read and written. FLOPs: the convolution and the norms.
    const uint64_t channels = shape.channels();
    return {word_bytes(2 * uint64_t{width} * shape.row_elements() + channels * shape.taps + 2 * shape.tail_elements() +
                       2 * shape.value_heads) +
                width * sizeof(DeltaStep),
            width * (2 * channels * shape.taps + 6 * uint64_t{shape.keys()})};
  }
};

/// The recurrence over the steps, in their order: out[row, h] as above. States may be kept without any out.
struct DeltaNetArgs {
  uint32_t width = 0;             // steps
  uint32_t rows = 0;              // R: that `in` and `out` have
  const Buffer* in = nullptr;     // [R, row_elements], of delta_inputs
  const Buffer* steps = nullptr;  // DeltaStep [W]
  DeltaShape shape;
  Buffer* states = nullptr;      // [kept, value_heads, key_dim, value_dim]
  Buffer* spare = nullptr;       // [spare, value_heads, key_dim, value_dim]
  Buffer* out = nullptr;         // [R, values], or null
  const Buffer* skip = nullptr;  // [value_heads], of a scan; else null

  static constexpr const char* name = "delta_net";
  std::string shapes() const { return std::to_string(width) + " rows, " + describe(shape); }
  OpPrice price() const {
    // The state read and written once, the rows read, the results written; for each element of the state and row a
    // decay, of a delta net a product with the key, a sum with k u and a product with the query.
    const uint64_t results = out != nullptr ? uint64_t{width} * shape.values() : 0;
    const uint64_t of_element = (out != nullptr ? 5 : 3) + (shape.corrects ? 2 : 0);
    return {word_bytes(2 * shape.state_elements() + uint64_t{width} * shape.row_elements() + results) +
                width * sizeof(DeltaStep),
            of_element * uint64_t{width} * shape.state_elements()};
  }
};

/// A short convolution between two gates (LFM2; Liquid AI, "LFM2 Technical Report", 2025): out[row, c] = C[row, c] *
/// sum_t taps[c, t] * window[t, c], the window being B * x of the row's last ancestors and, last, its own, summed in
/// that order; beyond the rows of the pass what the text's tail has. Steps as of a gated delta net: a step that keeps a
/// state writes its tail, B * x of the last taps - 1 rows, oldest first; no step may take what another keeps.
struct ShortConvArgs {
  uint32_t width = 0;              // steps
  uint32_t rows = 0;               // R: that `in` has
  uint32_t cols = 0;               // C
  uint32_t taps = 0;               // 2 ... kMostTaps, a row's own included
  const Buffer* in = nullptr;      // [R, 3 C]: B, C and x
  const Buffer* steps = nullptr;   // DeltaStep [W]
  const Buffer* kernel = nullptr;  // [C, taps], the row's own last
  Buffer* tails = nullptr;         // [kept, taps - 1, C]
  Activations* out = nullptr;      // [out_rows(), C] of rows with a step, which lie below it, no sums of squares; null:
                                   // tails alone are written

  static constexpr uint32_t kMostTaps = DeltaShape::kMostTaps;

  /// What is read of `out` is of the pass, and a device may lay activations out by its width.
  uint32_t out_rows() const { return width < rows ? width : rows; }

  uint64_t tail_elements() const { return uint64_t{taps - 1} * cols; }

  static constexpr const char* name = "short_conv";
  std::string shapes() const {
    return std::to_string(width) + " rows of " + std::to_string(cols) + ", " + std::to_string(taps) + " taps";
  }
  OpPrice price() const {
    // Rows read and written, the kernel, the tail read and written.
    const uint64_t elements = uint64_t{width} * cols, results = out != nullptr ? elements : 0;
    return {
        word_bytes(3 * elements + results + uint64_t{taps} * cols + 2 * tail_elements()) + width * sizeof(DeltaStep),
        (2 * uint64_t{taps} + 2) * elements};
  }
};

/// Throws bad_input for no steps, and for columns or taps that break what the members say.
void check_short_conv(const ShortConvArgs& args);

/// out[w, h] = in[w, h] / sqrt(mean of squares of in[w, h] + eps) * weight * silu(gate[w, h]) for each head h; or with
/// the gate within the norm, x = in[w, h] * silu(gate[w, h]): x / sqrt(mean of squares of x + eps) * weight[h].
struct GatedNormArgs {
  uint32_t width = 0;
  uint32_t heads = 0;
  uint32_t head_dim = 0;
  const Buffer* in = nullptr;      // [W, heads * head_dim]
  const Buffer* gate = nullptr;    // [W, heads * head_dim]
  const Buffer* weight = nullptr;  // [head_dim]; with the gate within the norm [heads * head_dim]
  float eps = 0;
  Activations* out = nullptr;  // [W, heads * head_dim], no sums of squares
  bool gate_within = false;

  uint32_t weights() const { return gate_within ? heads * head_dim : head_dim; }

  static constexpr const char* name = "gated_norm";
  std::string shapes() const {
    return std::to_string(width) + " rows of " + std::to_string(heads) + " heads of " + std::to_string(head_dim);
  }
  OpPrice price() const {
    const uint64_t elements = uint64_t{width} * heads * head_dim;
    return {word_bytes(3 * elements + weights()), 5 * elements};
  }
};

/// x[w, c] *= 1 / (1 + exp(-gate[w, c])).
struct GateArgs {
  uint32_t width = 0;
  const Buffer* gate = nullptr;  // [W, cols]
  Activations* x = nullptr;      // [W, cols]; its sums of squares mean nothing afterwards

  static constexpr const char* name = "gate";
  std::string shapes() const { return std::to_string(width) + " rows of " + std::to_string(x->cols()); }
  OpPrice price() const {
    const uint64_t elements = uint64_t{width} * x->cols();
    return {word_bytes(3 * elements), elements};
  }
};

/// A convolution along the rows of a pass whose kernels depend on the rows (DFlash2): x[w, c] += sum over taps j <= w,
/// in order, of (base[side, j, c] + kernel[w, side, j, c / group]) * in[w - j, c]. Tap 0 is the row itself; before row
/// 0 there is nothing.
struct ConvRowsArgs {
  uint32_t width = 0;
  uint32_t cols = 0;
  uint32_t taps = 0;               // 1 or more
  uint32_t group = 0;              // columns that share a kernel; divides cols
  uint32_t side = 0;               // of the tables: 0 or 1
  const Buffer* in = nullptr;      // [W, cols], another buffer than x
  const Buffer* base = nullptr;    // [2, taps, cols]
  const Buffer* kernel = nullptr;  // [W, 2, taps, cols / group]
  Buffer* x = nullptr;             // [W, cols]

  uint32_t groups() const { return cols / group; }
  uint32_t kernel_cols() const { return 2 * taps * groups(); }

  static constexpr const char* name = "conv_rows";
  std::string shapes() const {
    return std::to_string(width) + " rows of " + std::to_string(cols) + ", " + std::to_string(taps) +
           " taps in groups of " + std::to_string(group);
  }
  OpPrice price() const {
    // Of the tables the side that is used.
    const uint64_t elements = uint64_t{width} * cols;
    return {word_bytes(3 * elements + uint64_t{taps} * (cols + uint64_t{width} * groups())), 3 * taps * elements};
  }
};

/// Throws bad_input for taps, groups or a side that break what the members say.
void check_conv_rows(const ConvRowsArgs& args);

/// out[w, c] = gelu(scale * gate[w, c]) * inputs[w, offset + c], gelu as of GateFunction.
struct GateInputsArgs {
  uint32_t width = 0;
  const Buffer* gate = nullptr;  // [W, cols]
  float scale = 1;
  const Buffer* inputs = nullptr;  // [W, stride]
  uint32_t stride = 0;
  uint32_t offset = 0;
  Activations* out = nullptr;  // [W, cols], no sums of squares

  static constexpr const char* name = "gate_inputs";
  std::string shapes() const { return std::to_string(width) + " rows of " + std::to_string(out->cols()); }
  OpPrice price() const {
    const uint64_t elements = uint64_t{width} * out->cols();
    return {word_bytes(3 * elements), 2 * elements};
  }
};

/// out[w, c] = in[w, c]^2 where in is above 0, else 0; NaN stays (So et al., "Primer", 2021).
struct SquareReluArgs {
  uint32_t width = 0;
  const Buffer* in = nullptr;  // [W, cols]
  Activations* out = nullptr;  // [W, cols], no sums of squares

  static constexpr const char* name = "square_relu";
  std::string shapes() const { return std::to_string(width) + " rows of " + std::to_string(out->cols()); }
  OpPrice price() const {
    const uint64_t elements = uint64_t{width} * out->cols();
    return {word_bytes(2 * elements), elements};
  }
};

/// One op with its arguments. The buffers and weights it points to must outlive the Commands compiled from it.
using Op = std::variant<EmbedArgs, LinearArgs, LinearAddArgs, LinearSwigluArgs, RouteArgs, ExpertSwigluArgs,
                        ExpertAddArgs, AddBiasArgs, RopeStoreArgs, ProjectHeadsArgs, AttentionArgs, SelectArgs,
                        ArgmaxArgs, TopKArgs, SampleArgs, PickArgs, CopyRowsArgs, NormRowsArgs, KvMoveArgs,
                        DeltaInputsArgs, DeltaNetArgs, GatedNormArgs, GateArgs, NormAddArgs, CapLogitsArgs,
                        CountExpertsArgs, ConvRowsArgs, GateInputsArgs, SquareReluArgs, ShortConvArgs>;

// A recording: ops in the order they run in, as data. Devices compile it (Device::compile); tests and tools list,
// count, price and print it.

using OpList = std::vector<Op>;

/// Collects ops in the order in which they will run; each sees the results of the ones before it. Nothing is run or
/// checked here.
class Recorder {
 public:
  void operator()(Op op) { ops_.push_back(std::move(op)); }
  /// Returns the ops recorded so far and empties the recorder.
  OpList finish() { return std::exchange(ops_, {}); }

 private:
  OpList ops_;
};

/// "linear_add"
const char* name_of(const Op& op);
OpPrice price_of(const Op& op);
/// Sum of the prices of the ops. An operand that several ops read counts once for each of them.
OpPrice price_of(std::span<const Op> ops);
/// "linear         4 x Q4_1 [576, 1536]; 580608 bytes, 7077888 FLOPs"
std::string to_string(const Op& op);
/// One line for each op, then a line with the number of ops and the sum of their prices.
std::string to_string(std::span<const Op> ops);

/// How many of the ops are of one kind: count_of<LinearArgs>(ops).
template <class Args>
size_t count_of(std::span<const Op> ops) {
  size_t count = 0;
  for (const Op& op : ops) count += std::holds_alternative<Args>(op) ? 1 : 0;
  return count;
}

/// The ops that project_heads is equivalent to: one linear for each weight, then rope_store. Throws bad_input as
/// check_heads does.
OpList separate_ops(const ProjectHeadsArgs& args);

}  // namespace canopy
