// The kernels of one instruction set, CANOPY_CPU_SET; see kernels.h for what holds of all.

#include "engine/cpu/kernels.h"

#include "engine/cpu/lanes.h"

namespace canopy::cpu {
namespace {

// Weights are read once a pass, in order: what is fetched so far ahead is there when it is needed.
constexpr uint32_t kAhead = 8192;
constexpr uint32_t kLine = 64;

// ---- products -----------------------------------------------------------------------------------------------------

// Rows that fit into registers beside what they are multiplied by.
#if defined(__AVX512F__)
constexpr uint32_t kTile = 12;
#elif defined(__AVX2__) || defined(CANOPY_CPU_NEON)
constexpr uint32_t kTile = 8;
#else
constexpr uint32_t kTile = 4;
#endif
constexpr uint32_t kDenseTile = 4;

/// What a product reads of its operands: a band of the weight, and rows from the first on.
struct Operands {
  const Packed& weight;
  const uint8_t* band;
  const RowsView& in;
  uint32_t first;
};

/// Some outputs of a band: S registers of them from `first` on.
template <uint32_t S>
struct Lanes {
  uint32_t first;
  CANOPY_LANES uint32_t at(uint32_t s) const { return first + s * kWide; }
  CANOPY_LANES V halves(const uint8_t* sixteen, uint32_t s) const {
    return load_halves(reinterpret_cast<const uint16_t*>(sixteen) + at(s));
  }
  CANOPY_LANES V upper_halves(const uint8_t* sixteen, uint32_t s) const {
    return load_upper_halves(reinterpret_cast<const uint16_t*>(sixteen) + at(s));
  }
};

/// The pairs of columns in a line as 16-bit numbers: 4 of nibbles, 2 of bytes.
template <bool nibbles>
CANOPY_LANES void unpack(const uint8_t* line, S16* pairs) {
  if constexpr (nibbles) {
    U16 words;
    std::memcpy(&words, line, sizeof words);
#pragma GCC unroll 4
    for (int p = 0; p < 4; ++p) pairs[p] = (S16)((words >> (4 * p)) & 0xf);
  } else {
    S16 words;
    std::memcpy(&words, line, sizeof words);
    pairs[0] = (words << 8) >> 8;
    pairs[1] = words >> 8;
  }
}

/// Whole-number sums of a block's products with R rows; `halves`: those of the first and the last 16 columns apart.
template <bool nibbles, bool halves, uint32_t R, uint32_t S>
struct BlockSums {
  static constexpr uint32_t kPairs = nibbles ? 4 : 2, kLines = nibbles ? 4 : 8;
  // Sums that do not wait for each other.
  static constexpr uint32_t kChains = halves ? 2 : R * S == 1 ? 4 : R * S == 2 ? 2 : 1;
  PairSums sums[R][S][kChains] = {};

  CANOPY_LANES BlockSums(const uint8_t* lines, Lanes<S> lanes, const int16_t* codes) {
#pragma GCC unroll 8
    for (uint32_t l = 0; l < kLines; ++l) {
      S16 pairs[S][kPairs];
#pragma GCC unroll 4
      for (uint32_t s = 0; s < S; ++s) unpack<nibbles>(lines + l * kLine + lanes.at(s) * 4, pairs[s]);
      if (lanes.first == 0) __builtin_prefetch(lines + l * kLine + kAhead, 0, 2);
#pragma GCC unroll 4
      for (uint32_t p = 0; p < kPairs; ++p) {
        const uint32_t pair = l * kPairs + p;
        const uint32_t chain = halves ? pair / 8 : pair % kChains;
#pragma GCC unroll 16
        for (uint32_t r = 0; r < R; ++r) {
          const S16 activations = pair_in_all(codes + r * kBlock + 2 * pair);
#pragma GCC unroll 4
          for (uint32_t s = 0; s < S; ++s) sums[r][s][chain] = add_pairs(sums[r][s][chain], pairs[s][p], activations);
        }
      }
    }
  }

  CANOPY_LANES I whole(uint32_t r, uint32_t s) const {
    const auto of = [&](uint32_t chain) __attribute__((always_inline)) {
      return sum_of_pairs(sums[r][s][chain]);
    };
    if constexpr (kChains == 4) return (of(0) + of(1)) + (of(2) + of(3));
    if constexpr (kChains == 2) return of(0) + of(1);
    return of(0);
  }
};

/// The sums of S registers of outputs for R rows, without the norm's factors.
template <Form form, uint32_t R, uint32_t S>
CANOPY_LANES void sum_columns(const Operands& of, Lanes<S> lanes, V (*acc)[S]) {
  constexpr bool nibbles = form == Form::nibbles || form == Form::nibbles_with_sub_scales;
  constexpr bool sub_scales = form == Form::nibbles_with_sub_scales || form == Form::bytes_with_sub_scales;
  constexpr bool halves = sub_scales && !nibbles;
  constexpr uint32_t block_lines = nibbles ? 4 : 8;
  const Packed& weight = of.weight;
  const bool has_minimums = weight.has_minimums, minus_eight = weight.minus_eight, brain = weight.brain_scales;
  const uint32_t flat_bytes = has_minimums ? 64 : 32;
  const uint32_t sub_bytes = nibbles ? 32 : has_minimums ? 64 : 32;
  const uint8_t* scales = of.band + weight.scales_at;
  V of_256[S] = {}, minus_minimum[S] = {};
  for (uint32_t b = 0; b < of.in.blocks; ++b) {
    const uint8_t* lines = of.band + uint64_t{b} * block_lines * kLine;
    const uint64_t at = uint64_t{b} * of.in.stride + of.first;
    const BlockFactors* factors = of.in.factors + at;
    if (lanes.first == 0) __builtin_prefetch(scales + kAhead, 0, 2);
    const BlockSums<nibbles, halves, R, S> sums(lines, lanes, of.in.codes + at * kBlock);
    if (sub_scales && b % 8 == 0) {
#pragma GCC unroll 4
      for (uint32_t s = 0; s < S; ++s) {
        of_256[s] = lanes.halves(scales, s);
        minus_minimum[s] = V{} - lanes.halves(scales + 32, s);
      }
      scales += 64;
    }
#pragma GCC unroll 4
    for (uint32_t s = 0; s < S; ++s) {
#pragma GCC unroll 2
      for (uint32_t h = 0; h < (halves ? 2 : 1); ++h) {
        V scale, minimum = {};
        if constexpr (!sub_scales) {
          scale = !nibbles && brain ? lanes.upper_halves(scales, s) : lanes.halves(scales, s);
          if (has_minimums) minimum = lanes.halves(scales + 32, s);
          if (nibbles && minus_eight) minimum = scale * all(-8.0f);
        } else if constexpr (nibbles) {
          scale = of_256[s] * load_bytes<uint8_t>(scales + lanes.at(s));
          minimum = minus_minimum[s] * load_bytes<uint8_t>(scales + 16 + lanes.at(s));
        } else {
          scale = of_256[s] * load_bytes<int8_t>(scales + 16 * h + lanes.at(s));
          if (has_minimums) minimum = minus_minimum[s] * load_bytes<uint8_t>(scales + 32 + 16 * h + lanes.at(s));
        }
#pragma GCC unroll 16
        for (uint32_t r = 0; r < R; ++r) {
          const I whole = halves ? sum_of_pairs(sums.sums[r][s][h % sums.kChains]) : sums.whole(r, s);
          acc[r][s] = fma(to_float(whole), scale * all(factors[r].scale), acc[r][s]);
          const float sum = halves ? factors[r].half_sums[h] : factors[r].sum;
          if (nibbles || has_minimums) acc[r][s] = fma(minimum, all(sum), acc[r][s]);
        }
      }
    }
    scales += sub_scales ? sub_bytes : flat_bytes;
  }
}

template <Form form, uint32_t R>
__attribute__((noinline)) void quantized_tile(const Operands& of, const float* factors, float* out, uint64_t stride) {
  // With few rows all outputs at once, so that each activation is broadcast once.
  constexpr uint32_t S = R * (kBand / kWide) <= 4 ? kBand / kWide : 1;
  for (Lanes<S> lanes{0}; lanes.first < kBand; lanes.first += S * kWide) {
    V acc[R][S] = {};
    sum_columns<form, R, S>(of, lanes, acc);
#pragma GCC unroll 16
    for (uint32_t r = 0; r < R; ++r) {
#pragma GCC unroll 4
      for (uint32_t s = 0; s < S; ++s) store(out + r * stride + lanes.at(s), acc[r][s] * all(factors[r]));
    }
  }
}

template <Form form>
CANOPY_LANES F dense_column(const uint8_t* band, uint32_t column) {
  if constexpr (form == Form::f32) return load16(reinterpret_cast<const float*>(band) + size_t{column} * kBand);
  const uint16_t* from = reinterpret_cast<const uint16_t*>(band) + size_t{column} * kBand;
  return each([&](uint32_t i) __attribute__((always_inline)) {
    return form == Form::f16 ? load_halves(from + kWide * i) : load_upper_halves(from + kWide * i);
  });
}

template <Form form, uint32_t R>
__attribute__((noinline)) void dense_tile(const Operands& of, const float* factors, float* out, uint64_t stride) {
  const uint64_t row_values = uint64_t{of.in.blocks} * kBlock;
  const float* values = of.in.values + of.first * row_values;
  F acc[R] = {};
  for (uint32_t k = 0; k < of.weight.cols; ++k) {
    const F column = dense_column<form>(of.band, k);
    __builtin_prefetch(of.band + size_t{k} * kBand * (form == Form::f32 ? 4 : 2) + kAhead, 0, 2);
#pragma GCC unroll 4
    for (uint32_t r = 0; r < R; ++r) acc[r] = fma(column, all16(values[r * row_values + k]), acc[r]);
  }
#pragma GCC unroll 4
  for (uint32_t r = 0; r < R; ++r) store16(out + r * stride, acc[r] * all16(factors[r]));
}

using TileFunction = void (*)(const Operands&, const float* factors, float* out, uint64_t stride);

template <Form form, uint32_t... R>
struct Tiles {
  static constexpr bool dense = form == Form::f32 || form == Form::f16 || form == Form::bf16;
  static constexpr TileFunction of(uint32_t rows) {
    TileFunction found = nullptr;
    if constexpr (dense) {
      ((rows == R ? void(found = dense_tile<form, R>) : void()), ...);
    } else {
      ((rows == R ? void(found = quantized_tile<form, R>) : void()), ...);
    }
    return found;
  }
};

template <Form form>
using QuantizedTiles =
#if defined(__AVX512F__)
    Tiles<form, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12>;
#elif defined(__AVX2__) || defined(CANOPY_CPU_NEON)
    Tiles<form, 1, 2, 3, 4, 5, 6, 7, 8>;
#else
    Tiles<form, 1, 2, 3, 4>;
#endif

TileFunction tile_function(Form form, uint32_t rows) {
  switch (form) {
    case Form::nibbles: return QuantizedTiles<Form::nibbles>::of(rows);
    case Form::nibbles_with_sub_scales: return QuantizedTiles<Form::nibbles_with_sub_scales>::of(rows);
    case Form::bytes: return QuantizedTiles<Form::bytes>::of(rows);
    case Form::bytes_with_sub_scales: return QuantizedTiles<Form::bytes_with_sub_scales>::of(rows);
    case Form::f32: return Tiles<Form::f32, 1, 2, 3, 4>::of(rows);
    case Form::f16: return Tiles<Form::f16, 1, 2, 3, 4>::of(rows);
    case Form::bf16: return Tiles<Form::bf16, 1, 2, 3, 4>::of(rows);
  }
  return nullptr;
}

void product(const Packed& weight, uint32_t band, uint32_t bands, const RowsView& in, uint32_t first, uint32_t rows,
             const float* factors, float* out, uint64_t stride) {
  const bool dense = weight.form == Form::f32 || weight.form == Form::f16 || weight.form == Form::bf16;
  const uint32_t most = dense ? kDenseTile : kTile;
  const uint32_t tiles = (rows + most - 1) / most;
  for (uint32_t t = 0, done = 0; t < tiles; ++t) {
    const uint32_t end = static_cast<uint32_t>(uint64_t{rows} * (t + 1) / tiles);
    const TileFunction run = tile_function(weight.form, end - done);
    for (uint32_t b = 0; b < bands; ++b) {
      const Operands operands{weight, weight.data + (band + b) * weight.band_bytes, in, first + done};
      run(operands, factors + done, out + done * stride + size_t{b} * kBand, stride);
    }
    done = end;
  }
}

// ---- activations --------------------------------------------------------------------------------------------------

constexpr float kMostCode = 32639;  // two signed digits of 8 bits: 127 * 256 + 127

void write_block(const RowsView& to, uint32_t row, uint32_t block, const float* values, const float* squared) {
  const size_t at = size_t{block} * to.stride + row;
  const F v0 = load16(values), v1 = load16(values + 16);
  float* kept = to.values + size_t{row} * to.blocks * kBlock + size_t{block} * kBlock;
  store16(kept, v0);
  store16(kept + 16, v1);
  if (squared != nullptr) {
    const F x0 = load16(squared), x1 = load16(squared + 16);
    to.squares[at] = sum_of(fma(x1, x1, x0 * x0));
  } else {
    to.squares[at] = __builtin_nanf("");
  }
  const float most = largest_of(larger(magnitude(v0), magnitude(v1)));
  // A number times 0 is 0, so this is a NaN exactly where a value is not finite.
  const float damage = sum_of(v0 * all16(0.0f) + v1 * all16(0.0f));
  int16_t* codes = to.codes + at * kBlock;
  BlockFactors& factors = to.factors[at];
  if (damage != 0 || !(most > 1e-30f)) {
    const float nothing = damage == 0 ? 0.0f : __builtin_nanf("");
    std::memset(codes, 0, kBlock * sizeof *codes);
    factors = {nothing, nothing, {nothing, nothing}};
    return;
  }
  const F inverse = all16(kMostCode / most);
  float whole[kBlock];
  store16(whole, rounded(v0 * inverse));
  store16(whole + 16, rounded(v1 * inverse));
  int32_t sums[2] = {0, 0};
  for (uint32_t i = 0; i < kBlock; ++i) codes[i] = static_cast<int16_t>(static_cast<int32_t>(whole[i]));
  for (uint32_t i = 0; i < 16; ++i) sums[0] += codes[i];
  for (uint32_t i = 16; i < kBlock; ++i) sums[1] += codes[i];
  factors.scale = most / kMostCode;
  factors.sum = factors.scale * static_cast<float>(sums[0] + sums[1]);
  for (uint32_t h = 0; h < 2; ++h) factors.half_sums[h] = factors.scale * static_cast<float>(sums[h]);
}

float dot(const float* a, const float* b, uint32_t count) {
  F sum = all16(0);
  uint32_t k = 0;
  for (; k + 16 <= count; k += 16) sum = fma(load16(a + k), load16(b + k), sum);
  if (k < count) {
    float x[16] = {}, y[16] = {};
    for (uint32_t i = 0; k + i < count; ++i) x[i] = a[k + i], y[i] = b[k + i];
    sum = fma(load16(x), load16(y), sum);
  }
  return sum_of(sum);
}

// ---- functions of elements ----------------------------------------------------------------------------------------

/// Calls change(sixteen) on all elements; the last lanes may stand for none.
template <class Change>
CANOPY_LANES void in_place(float* x, uint64_t count, Change change) {
  uint64_t i = 0;
  for (; i + 16 <= count; i += 16) store16(x + i, change(load16(x + i)));
  if (i == count) return;
  float rest[16] = {};
  for (uint64_t k = 0; i + k < count; ++k) rest[k] = x[i + k];
  store16(rest, change(load16(rest)));
  for (uint64_t k = 0; i + k < count; ++k) x[i + k] = rest[k];
}

CANOPY_LANES F gate_and_up(uint32_t function, F gate, F up, float limit) {
  if (function == 0) return gate * sigmoid16(gate) * up;
  if (function == 1) {
    const F inner = fma(gate * gate * gate, all16(0.044715f), gate);
    return gate * sigmoid16(inner * all16(1.5957691216f)) * up;  // 2 sqrt(2 / pi)
  }
  gate = at_most(gate, limit);
  up = at_least(at_most(up, limit), -limit);
  return (up + all16(1.0f)) * gate * sigmoid16(gate * all16(1.702f));
}

void gated(uint32_t function, const float* gate, const float* up, float limit, float* out, uint32_t count) {
  uint32_t i = 0;
  for (; i + 16 <= count; i += 16) store16(out + i, gate_and_up(function, load16(gate + i), load16(up + i), limit));
  if (i == count) return;
  float g[16] = {}, u[16] = {};
  for (uint32_t k = 0; i + k < count; ++k) g[k] = gate[i + k], u[k] = up[i + k];
  store16(g, gate_and_up(function, load16(g), load16(u), limit));
  for (uint32_t k = 0; i + k < count; ++k) out[i + k] = g[k];
}

void silu(float* x, uint32_t count) {
  in_place(
      x, count, [](F v) __attribute__((always_inline)) { return v * sigmoid16(v); });
}
void sigmoid(float* x, uint32_t count) {
  in_place(
      x, count, [](F v) __attribute__((always_inline)) { return sigmoid16(v); });
}

CANOPY_LANES F capped(F x, float multiplier, float softcap) {
  x = x * all16(multiplier);
  return softcap > 0 ? all16(softcap) * tanh16(x / all16(softcap)) : x;
}
void cap(float* x, uint64_t count, float multiplier, float softcap) {
  in_place(
      x, count, [=](F v) __attribute__((always_inline)) { return capped(v, multiplier, softcap); });
}

/// A register of floats from element `at` on, which is what is read in order.
template <bool halves>
CANOPY_LANES V load_element(const float* floats, const uint16_t* half_floats, size_t at) {
  if constexpr (halves) {
    if (at * sizeof(uint16_t) % kLine == 0) __builtin_prefetch(half_floats + at + kAhead / sizeof(uint16_t), 0, 2);
    return load_halves(half_floats + at);
  }
  return load(floats + at);
}

void to_halves(const float* from, uint16_t* to, uint32_t count) {
  uint32_t i = 0;
  for (; i + kWide <= count; i += kWide) store_halves(to + i, load(from + i));
  for (; i < count; ++i) to[i] = float_to_half(from[i]);
}
void from_halves(const uint16_t* from, float* to, uint32_t count) {
  uint32_t i = 0;
  for (; i + kWide <= count; i += kWide) store(to + i, load_element<true>(nullptr, from, i));
  for (; i < count; ++i) to[i] = half_to_float(from[i]);
}

// ---- attention ----------------------------------------------------------------------------------------------------

// Queries share each load of a key or a value. A query's sums do not depend on the others.
// Registers of positions, or of columns, at once: as many sums as do not wait for each other and fit into registers.
template <uint32_t Q>
inline constexpr uint32_t kSide = Q* kWide <= (kWide == 16 ? 48 : 16) ? 4 : 2;

template <uint32_t Q, bool halves>
CANOPY_LANES void scores(const PageView& page, const PageQuery* queries, float (*to)[kPage]) {
  constexpr uint32_t side = kSide<Q>;
  for (uint32_t at = 0; at < kPage; at += side * kWide) {
    V acc[Q][side] = {};
    for (uint32_t d = 0; d < page.dim; ++d) {
      V key[side];
#pragma GCC unroll 4
      for (uint32_t s = 0; s < side; ++s) {
        key[s] = load_element<halves>(page.keys, page.half_keys, size_t{d} * kPage + at + s * kWide);
        if (Q > 1) hold(key[s]);
      }
#pragma GCC unroll 4
      for (uint32_t q = 0; q < Q; ++q) {
        const V element = all(queries[q].query[d]);
#pragma GCC unroll 4
        for (uint32_t s = 0; s < side; ++s) acc[q][s] = fma(element, key[s], acc[q][s]);
      }
    }
#pragma GCC unroll 4
    for (uint32_t q = 0; q < Q; ++q) {
#pragma GCC unroll 4
      for (uint32_t s = 0; s < side; ++s) store(to[q] + at + s * kWide, acc[q][s]);
    }
  }
}

/// Adds positions [first, end) to the weighted sums of S registers of values, from column `d` on, of Q queries.
template <uint32_t Q, uint32_t S, bool halves>
CANOPY_LANES void weigh_columns(const PageView& page, float (*const weights)[kPage], uint32_t first, uint32_t end,
                                uint32_t d, float (*sums)[kMostValueDim]) {
  V acc[Q][S];
#pragma GCC unroll 4
  for (uint32_t q = 0; q < Q; ++q) {
#pragma GCC unroll 4
    for (uint32_t s = 0; s < S; ++s) acc[q][s] = load(sums[q] + d + s * kWide);
  }
  for (uint32_t j = first; j < end; ++j) {
    V v[S];
#pragma GCC unroll 4
    for (uint32_t s = 0; s < S; ++s) {
      v[s] = load_element<halves>(page.values, page.half_values, size_t{j} * page.value_stride + d + s * kWide);
      if (Q > 1) hold(v[s]);
    }
#pragma GCC unroll 4
    for (uint32_t q = 0; q < Q; ++q) {
      const V weight = all(weights[q][j]);
#pragma GCC unroll 4
      for (uint32_t s = 0; s < S; ++s) acc[q][s] = fma(weight, v[s], acc[q][s]);
    }
  }
#pragma GCC unroll 4
  for (uint32_t q = 0; q < Q; ++q) {
#pragma GCC unroll 4
    for (uint32_t s = 0; s < S; ++s) store(sums[q] + d + s * kWide, acc[q][s]);
  }
}

/// The same of all columns.
template <uint32_t Q, bool halves>
CANOPY_LANES void weigh(const PageView& page, float (*const weights)[kPage], uint32_t first, uint32_t end,
                        float (*sums)[kMostValueDim]) {
  constexpr uint32_t side = kSide<Q>;
  uint32_t d = 0;
  for (; d + side * kWide <= page.value_stride; d += side * kWide)
    weigh_columns<Q, side, halves>(page, weights, first, end, d, sums);
  for (; d < page.value_stride; d += kWide) weigh_columns<Q, 1, halves>(page, weights, first, end, d, sums);
}

/// Sixteen positions of a page from `j` on: x where the query sees them, otherwise the other one.
CANOPY_LANES F seen(const PageQuery& query, uint32_t j, F x, F other) {
  const F position = lane_numbers() + all16(static_cast<float>(j));
  const F before_end = where_less(position, all16(static_cast<float>(query.end)), x, other);
  return where_less(position, all16(static_cast<float>(query.first)), other, before_end);
}

/// Scales the scores of a page, and gives the largest that the query sees; NaN where it sees one.
CANOPY_LANES float scale_scores(const PageView& page, const PageQuery& query, float* scores) {
  F largest = all16(-__builtin_inff()), nans = all16(0);
#pragma GCC unroll 4
  for (uint32_t j = 0; j < kPage; j += 16) {
    const F x = capped(load16(scores + j), page.scale, page.softcap);
    store16(scores + j, x);
    largest = larger(seen(query, j, x, all16(-__builtin_inff())), largest);
    nans = nans + seen(query, j, nan_marks(x), all16(0));
  }
  return sum_of(nans) > 0 ? __builtin_nanf("") : largest_of(largest);
}

/// Scores to exponentials relative to the largest, and their sum; 0 where the query sees nothing.
CANOPY_LANES float exponentials(const PageQuery& query, float largest, float* scores) {
  F total = all16(0);
#pragma GCC unroll 4
  for (uint32_t j = 0; j < kPage; j += 16) {
    const F x = seen(query, j, exp16(load16(scores + j) - all16(largest)), all16(0));
    store16(scores + j, x);
    total = total + x;
  }
  return sum_of(total);
}

template <uint32_t Q, bool halves>
__attribute__((noinline)) void attend_together(const PageView& page, const PageQuery* queries) {
  alignas(64) float weights[Q][kPage];
  alignas(64) float sums[Q][kMostValueDim];
  scores<Q, halves>(page, queries, weights);
  uint32_t first = 0, end = kPage;  // what all of them see
  // One step of all before the next: they do not wait for each other.
#pragma GCC unroll 4
  for (uint32_t q = 0; q < Q; ++q) queries[q].part[0] = scale_scores(page, queries[q], weights[q]);
#pragma GCC unroll 4
  for (uint32_t q = 0; q < Q; ++q) queries[q].part[1] = exponentials(queries[q], queries[q].part[0], weights[q]);
  for (uint32_t q = 0; q < Q; ++q) {
    first = queries[q].first > first ? queries[q].first : first;
    end = queries[q].end < end ? queries[q].end : end;
    std::memset(sums[q], 0, page.value_stride * sizeof(float));
  }
  if (first >= end) first = end = kPage;
  for (uint32_t q = 0; q < Q; ++q) {
    const uint32_t own_end = queries[q].end < first ? queries[q].end : first;
    if (queries[q].first < own_end) weigh<1, halves>(page, weights + q, queries[q].first, own_end, sums + q);
  }
  weigh<Q, halves>(page, weights, first, end, sums);
  for (uint32_t q = 0; q < Q; ++q) {
    if (first < end && end < queries[q].end) weigh<1, halves>(page, weights + q, end, queries[q].end, sums + q);
    std::memcpy(queries[q].part + 2, sums[q], page.value_dim * sizeof(float));
  }
}

template <bool halves>
CANOPY_LANES void attend_all(const PageView& page, const PageQuery* queries, uint32_t count) {
  constexpr uint32_t most = kQueriesTogether;
  for (; count >= most; count -= most, queries += most) attend_together<most, halves>(page, queries);
  if (count == 3) attend_together<3, halves>(page, queries);
  if (count == 2) attend_together<2, halves>(page, queries);
  if (count == 1) attend_together<1, halves>(page, queries);
}

void attend(const PageView& page, const PageQuery* queries, uint32_t count) {
  if (page.half_keys != nullptr) return attend_all<true>(page, queries, count);
  attend_all<false>(page, queries, count);
}

struct Pair {
  float a, b;
};
CANOPY_LANES Pair exp_of(float a, float b) {
  const F lane = lane_numbers();
  float y[16];
  store16(y, exp16(where_less(lane, all16(1.0f), all16(a), all16(b))));
  return {y[0], y[1]};
}

/// The larger; a NaN where either is.
CANOPY_LANES float larger_or_nan(float a, float b) {
  if (a != a || b != b) return __builtin_nanf("");
  return a > b ? a : b;
}

void merge(float* sum, const float* part, uint32_t dim) {
  const float most = larger_or_nan(sum[0], part[0]);
  const auto [before, now] = exp_of(sum[0] - most, part[0] - most);
  sum[0] = most;
  sum[1] = sum[1] * before + part[1] * now;
  float* x = sum + 2;
  const float* y = part + 2;
  for (uint32_t d = 0; d < dim; ++d) x[d] = x[d] * before + y[d] * now;
}

void finish(const float* sum, float sink, float* out, uint32_t dim) {
  float factor = 1, total = sum[1];
  if (sink > -__builtin_inff() || sink != sink) {
    const float most = larger_or_nan(sum[0], sink);
    const auto [own, of_sink] = exp_of(sum[0] - most, sink - most);
    factor = own;
    total = total * factor + of_sink;
  }
  for (uint32_t d = 0; d < dim; ++d) out[d] = sum[2 + d] * factor / total;
}

// ---- logits -------------------------------------------------------------------------------------------------------

uint32_t largest(const float* values, uint32_t count) {
  F most = all16(-__builtin_inff());
  uint32_t i = 0;
  for (; i + 16 <= count; i += 16) most = larger(load16(values + i), most);
  float best = largest_of(most);
  for (; i < count; ++i) best = values[i] > best ? values[i] : best;
  for (i = 0; i < count; ++i) {
    if (values[i] == best) return i;
  }
  return count;
}

float top_k(const float* logits, uint32_t count, uint32_t k, float multiplier, float softcap, TopEntries to) {
  uint32_t found = 0;
  const auto insert = [&](float value, uint32_t id) __attribute__((always_inline)) {
    const float key = value == value ? value : -__builtin_inff();
    uint32_t at = found < k ? found++ : k - 1;
    for (; at > 0 && !(to.values[at - 1] >= key); --at) {
      to.values[at] = to.values[at - 1];
      to.ids[at] = to.ids[at - 1];
    }
    to.values[at] = key;
    to.ids[at] = id;
  };
  const auto piece = [&](uint32_t i) __attribute__((always_inline)) {
    if (i + 16 <= count) return capped(load16(logits + i), multiplier, softcap);
    float rest[16];
    for (uint32_t j = 0; j < 16; ++j) rest[j] = i + j < count ? logits[i + j] : -__builtin_inff();
    F y = capped(load16(rest), multiplier, softcap);
    store16(rest, y);
    for (uint32_t j = 0; j < 16; ++j) rest[j] = i + j < count ? rest[j] : -__builtin_inff();
    return load16(rest);
  };
  for (uint32_t i = 0; i < count; i += 16) {
    const F y = piece(i);
    if (found == k && !(largest_of(y) > to.values[k - 1])) continue;
    float x[16];
    store16(x, y);
    for (uint32_t j = 0; j < 16 && i + j < count; ++j) {
      if (found < k || x[j] > to.values[k - 1]) insert(x[j], i + j);
    }
  }
  const float most = to.values[0];
  F sum = all16(0);
  for (uint32_t i = 0; i < count; i += 16) {
    // At the bound of exp16 an element counts as 1e-38: nothing, as the largest counts as 1.
    sum = sum + exp16(piece(i) - all16(most));
  }
  return sum_of(sum);
}

// ---- recurrences --------------------------------------------------------------------------------------------------

void delta_step(float* state, uint32_t key_dim, const float* query, const float* key, const float* value, float beta,
                float decay, float* out) {
  F known = all16(0), result = all16(0);
  for (uint32_t k = 0; k < key_dim; ++k) {
    const F s = load16(state + size_t{k} * 16) * all16(decay);
    store16(state + size_t{k} * 16, s);
    known = fma(s, all16(key[k]), known);
  }
  const F change = all16(beta) * (load16(value) - known);
  for (uint32_t k = 0; k < key_dim; ++k) {
    const F s = fma(all16(key[k]), change, load16(state + size_t{k} * 16));
    store16(state + size_t{k} * 16, s);
    result = fma(s, all16(query[k]), result);
  }
  if (out != nullptr) store16(out, result);
}

void scan_step(float* state, uint32_t key_dim, const float* query, const float* key, const float* value, float beta,
               float decay, float skip, float* out) {
  const F change = all16(beta) * load16(value);
  F result = all16(0);
  for (uint32_t k = 0; k < key_dim; ++k) {
    const F s = fma(all16(key[k]), change, load16(state + size_t{k} * 16) * all16(decay));
    store16(state + size_t{k} * 16, s);
    result = fma(s, all16(query[k]), result);
  }
  if (out != nullptr) store16(out, fma(all16(skip), load16(value), result));
}

// ---- measurements -------------------------------------------------------------------------------------------------

float read_memory(const void* memory, uint64_t bytes) {
  const float* from = static_cast<const float*>(memory);
  V sums[4] = {};
  for (uint64_t i = 0; i + 64 <= bytes / sizeof(float); i += 64) {
    __builtin_prefetch(from + i + kAhead / sizeof(float), 0, 2);
    for (uint32_t j = 0; j < 64; j += kWide) sums[j / kWide % 4] += load(from + i + j);
  }
  const V all_of_them = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  return all_of_them[0];
}

float multiply_add(uint64_t steps) {
  V sums[16];
  for (uint32_t i = 0; i < 16; ++i) sums[i] = all(static_cast<float>(i));
  const V factor = all(0.999f), more = all(1e-3f);
  for (uint64_t s = 0; s < steps; ++s) {
#pragma GCC unroll 16
    for (uint32_t i = 0; i < 16; ++i) sums[i] = fma(sums[i], factor, more);
  }
  V total = {};
  for (uint32_t i = 0; i < 16; ++i) total += sums[i];
  return total[0];
}

#define CANOPY_JOIN_NAMES(a, b) a##b
#define CANOPY_TABLE_OF(set) CANOPY_JOIN_NAMES(kernels_, set)
#define CANOPY_TEXT_OF(set) #set
#define CANOPY_NAME_OF(set) CANOPY_TEXT_OF(set)

}  // namespace

extern const Kernels CANOPY_TABLE_OF(CANOPY_CPU_SET);
const Kernels CANOPY_TABLE_OF(CANOPY_CPU_SET) = {
    CANOPY_NAME_OF(CANOPY_CPU_SET),
    kTile,
    product,
    write_block,
    dot,
    gated,
    silu,
    sigmoid,
    cap,
    to_halves,
    from_halves,
    attend,
    merge,
    finish,
    largest,
    top_k,
    delta_step,
    scan_step,
    read_memory,
    multiply_add,
    kWide,
};

}  // namespace canopy::cpu
