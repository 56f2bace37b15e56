#pragma once
// Ops on the rows of a pass, each by itself: what stands between two products and is part of neither. Conventions as in
// ops.h.

#include <cstdint>
#include <string>

#include "engine/compute/op_price.h"
#include "engine/compute/types.h"

namespace canopy {

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

/// x[w] += in[w] / sqrt(mean of squares of in[w] + eps) * weight; out = x * norm.weight; aux[w, offset + c] = aux_scale
/// * x[w, c] where aux is given. What a mixer or a feed-forward gives goes through a norm of its own before it is
/// added.
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

  static constexpr const char* name = "norm_add";
  std::string shapes() const {
    return std::to_string(width) + " rows of " + std::to_string(out->cols()) + (aux != nullptr ? ", with aux" : "");
  }
  OpPrice price() const {
    // Bytes: in, x read and written, the activations, aux, both weights. FLOPs: the sums of squares of in and of x, the
    // scale, both weights and the sum.
    const uint64_t cols = out->cols(), elements = uint64_t{width} * cols;
    return {word_bytes((aux != nullptr ? 5 : 4) * elements + 2 * cols), (aux != nullptr ? 9 : 8) * elements};
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

}  // namespace canopy
