#pragma once
// The ops of a gated delta net (Yang et al., "Gated Delta Networks", 2024), part of ops.h.
//
// Each value head has a state S [key_dim, value_dim]. A row with query q, key k, value v, decay d and beta b makes of
// the state of the row before it, its parent:
//
//   S <- d S;  u = b (v - S^T k);  S <- S + k u^T;  out = S^T q
//
// Rows of a pass form a forest: a row's parent is a row of the pass, or the text behind which the pass stands. How they
// are gone through is a list of steps, made on the host: parents come first, and where a row does not follow its
// parent, the state is taken back from where the parent's step has put it. The order changes no bit of any row.

#include <cstdint>
#include <string>

#include "engine/compute/delta_step.h"
#include "engine/compute/op_price.h"
#include "engine/compute/types.h"

namespace canopy {

struct DeltaShape {
  uint32_t key_heads = 0;    // of queries and keys
  uint32_t value_heads = 0;  // a multiple of key_heads
  uint32_t key_dim = 0;      // a multiple of 4, at most kMostKeyDim
  uint32_t value_dim = 0;    // a multiple of 4
  uint32_t taps = 0;         // of the convolution, its row included: 2 ... kMostTaps
  bool tiled = false;        // value head h reads key head h % key_heads; otherwise h / (value_heads / key_heads)

  static constexpr uint32_t kMostKeyDim = 128, kMostValueDim = 1024, kMostTaps = 8;

  uint32_t keys() const { return key_heads * key_dim; }
  uint32_t values() const { return value_heads * value_dim; }
  /// Of the convolution: queries, keys and values of all heads.
  uint32_t channels() const { return 2 * keys() + values(); }
  /// Elements of a row: the channels, then two numbers for each value head; rounded up to a multiple of 4.
  uint32_t row_elements() const { return (channels() + 2 * value_heads + 3) / 4 * 4; }
  uint64_t state_elements() const { return uint64_t{values()} * key_dim; }
  uint64_t tail_elements() const { return uint64_t{taps - 1} * channels(); }
  uint32_t key_head(uint32_t value_head) const {
    return tiled ? value_head % key_heads : value_head / (value_heads / key_heads);
  }
  bool operator==(const DeltaShape&) const = default;
};

/// "16 key heads of 128, 48 value heads of 128, 4 taps"
std::string describe(const DeltaShape& shape);
/// Throws bad_input, naming the op, for a shape that breaks what the members say.
void check_delta_shape(const DeltaShape& shape, const char* op);

/// What the recurrence reads of each step's row: queries and keys, values, and what each head forgets and takes.
///   x[c] = silu(sum_t taps[c, t] * window[t, c]),  the window being the inputs of the row's last ancestors and, last,
///          its own; beyond the rows of the pass those that the text's tail has
///   query head: x / (sqrt(sum x^2 + eps) sqrt(key_dim));  key head: x / sqrt(sum x^2 + eps);  values: x
///   decay[h] = exp(rate[h] * softplus(a[h] + bias[h]));  beta[h] = 1 / (1 + exp(-b[h]))
/// A step that keeps a state (`to` not spare) also writes its tail, the inputs of the last taps - 1 rows, oldest first;
/// no step may take what another keeps.
struct DeltaInputsArgs {
  uint32_t width = 0;             // steps
  uint32_t rows = 0;              // R: that `in` and `out` have
  const Buffer* in = nullptr;     // [R, row_elements]: queries, keys, values, b, a
  const Buffer* steps = nullptr;  // DeltaStep [W]
  DeltaShape shape;
  const Buffer* taps = nullptr;  // [channels, taps], the row's own last
  const Buffer* bias = nullptr;  // [value_heads]
  const Buffer* rate = nullptr;  // [value_heads], negative
  Buffer* tails = nullptr;       // [kept, taps - 1, channels]
  Buffer* out = nullptr;         // [R, row_elements]: queries, keys, values, beta, decay; of rows with a step

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

/// The recurrence over the steps, in their order: out[row, h] = S^T q. States may be kept without any out.
struct DeltaNetArgs {
  uint32_t width = 0;             // steps
  uint32_t rows = 0;              // R: that `in` and `out` have
  const Buffer* in = nullptr;     // [R, row_elements], of delta_inputs
  const Buffer* steps = nullptr;  // DeltaStep [W]
  DeltaShape shape;
  Buffer* states = nullptr;  // [kept, value_heads, key_dim, value_dim]
  Buffer* spare = nullptr;   // [spare, value_heads, key_dim, value_dim]
  Buffer* out = nullptr;     // [R, values], or null

  static constexpr const char* name = "delta_net";
  std::string shapes() const { return std::to_string(width) + " rows, " + describe(shape); }
  OpPrice price() const {
    // The state read and written once, the rows read, the results written; for each element of the state and row a
    // decay, a product with the key, a sum with k u and a product with the query.
    const uint64_t results = out != nullptr ? uint64_t{width} * shape.values() : 0;
    return {word_bytes(2 * shape.state_elements() + uint64_t{width} * shape.row_elements() + results) +
                width * sizeof(DeltaStep),
            (out != nullptr ? 7 : 5) * uint64_t{width} * shape.state_elements()};
  }
};

/// out[w, h] = in[w, h] / sqrt(mean of squares of in[w, h] + eps) * weight * silu(gate[w, h]) for each head h.
struct GatedNormArgs {
  uint32_t width = 0;
  uint32_t heads = 0;
  uint32_t head_dim = 0;
  const Buffer* in = nullptr;      // [W, heads * head_dim]
  const Buffer* gate = nullptr;    // [W, heads * head_dim]
  const Buffer* weight = nullptr;  // [head_dim]
  float eps = 0;
  Activations* out = nullptr;  // [W, heads * head_dim], no sums of squares

  static constexpr const char* name = "gated_norm";
  std::string shapes() const {
    return std::to_string(width) + " rows of " + std::to_string(heads) + " heads of " + std::to_string(head_dim);
  }
  OpPrice price() const {
    const uint64_t elements = uint64_t{width} * heads * head_dim;
    return {word_bytes(3 * elements + head_dim), 5 * elements};
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

}  // namespace canopy
