#pragma once
// The ops of a mixture of experts, part of ops.h: a router chooses some of a layer's experts for each row, and what
// they make of the row is added up.

#include <cmath>
#include <cstdint>
#include <string>

#include "engine/compute/op_price.h"
#include "engine/compute/types.h"

namespace canopy {

/// Most experts of a layer, and of a row, that the ops of mixtures take.
inline constexpr uint32_t kMaxExperts = 1024, kMaxUsedExperts = 64;

/// A layer's experts: how many there are, and through how many each row goes. `shared`: each row also goes through a
/// further one, a dense feed-forward, for whose share the router has a row of its own, behind the others.
struct ExpertCounts {
  uint32_t all = 0;   // 1 ... kMaxExperts
  uint32_t used = 0;  // 1 ... kMaxUsedExperts, at most all
  bool shared = false;

  /// Words of a bit for each.
  uint32_t touched_words() const { return (all + 31) / 32; }
  /// Rows of the router.
  uint32_t router_rows() const { return all + (shared ? 1 : 0); }
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
/// the sum of these exponentials, of the chosen ones where `of_chosen`, else of all. With a shared expert, logit[w,
/// all] is of its row, which nothing chooses, and shares[w, used] = 1 / (1 + exp(-logit[w, all])). Where `touched` is
/// given, the bits of the experts are set there that rows with ancestors go through; those that are set stay so.
struct RouteArgs {
  uint32_t width = 0;
  ExpertCounts experts;
  const Buffer* router = nullptr;   // [router_rows(), cols]
  const Activations* in = nullptr;  // [W, cols]
  float norm_eps = 0;               // 0: no norm
  bool of_chosen = true;
  Buffer* logits = nullptr;      // [W, router_rows()]
  Buffer* chosen = nullptr;      // uint32 [W, used]
  Buffer* shares = nullptr;      // [W, row_shares()]
  const Buffer* bias = nullptr;  // [router_rows()], added to the logits of each row; null: none
  const Buffer* rows = nullptr;  // Row [W], where touched
  Buffer* touched = nullptr;     // uint32 [layer + 1, touched_words()]: bit e mod 32 of word e / 32; or null
  uint32_t layer = 0;            // whose words

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

/// linear_swiglu with the experts of each row: out[w * used + i, f] = silu(s * g) * (s * u), g and u the products of
/// rows 2 f and 2 f + 1 of expert chosen[w, i] with in[w]. Each is summed as if it were alone, so that it does not
/// matter which rows have chosen the same expert. A bias is added to s * g and s * u. With a limit l > 0 the result is
/// (u' + 1) * g' * sigmoid(kClampedSlope * g'), g' = min(g, l) and u' = u between -l and l.
struct ExpertSwigluArgs {
  uint32_t width = 0;
  ExpertCounts experts;
  const Weight* weight = nullptr;   // [all * 2 * ffn, cols]: paired, expert after expert
  const Activations* in = nullptr;  // [W, cols]
  float norm_eps = 0;
  const Buffer* chosen = nullptr;  // uint32 [W, used], each below `all`
  Activations* out = nullptr;      // [W * used, ffn], no sums of squares
  const Buffer* bias = nullptr;    // [all * 2 * ffn], of each row of the weight; null: none
  float limit = 0;                 // 0: none

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
/// used] * shared[w, r] where there is a shared expert; out = x * norm.weight; aux as there.
struct ExpertAddArgs {
  uint32_t width = 0;
  ExpertCounts experts;
  const Weight* weight = nullptr;   // [all * rows, cols]: expert after expert
  const Activations* in = nullptr;  // [W * used, cols]
  const Buffer* chosen = nullptr;   // uint32 [W, used], each below `all`
  const Buffer* shares = nullptr;   // [W, row_shares()]
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
           (aux != nullptr ? ", with aux" : "");
  }
  OpPrice price() const {
    // Bytes: the products written and read, x read and written, the activations, aux. FLOPs: shares, x * norm and the
    // sum of squares.
    const uint64_t elements = uint64_t{width} * expert_rows(), used = experts.used, shares = experts.row_shares();
    const uint64_t read = width * (used * (uint64_t{weight->cols()} + 1) + shares);
    return expert_price(*weight, experts, width) +
           OpPrice{word_bytes(read + (used + shares + (aux != nullptr ? 4 : 3)) * elements + expert_rows()),
                   (2 * shares + 4) * elements};
  }
};

}  // namespace canopy
