// Recurrent layers: gated delta nets and scans, short convolutions, and what gates results. Formulas are at the ops
// (engine/compute/ops.h).

#include "cuda_backend/kernels/common.h"
#include "engine/compute/rows.h"

namespace canopy::cuda {

/// The input of a step's channel `t` rows up: found by parents, and beyond the pass in the tail of the text.
struct TapInput {
  Span<const float> from;
  uint64_t at;  // of the first channel
};

CANOPY_DEVICE TapInput tap_input(const DeltaInputsParams& p, uint32_t step, uint32_t up) {
  const Span<const DeltaStep> steps{p.steps};
  uint32_t at = step, last = step;
  for (uint32_t t = 0; t < up && at != DeltaStep::kNone; ++t) {
    last = at;
    at = steps[at].parent;
    if (at == DeltaStep::kNone) {
      const uint64_t tail = uint64_t{steps[last].from} * (p.shape.taps - 1) + p.shape.taps - 1 - (up - t);
      return {Span<const float>{p.tails}, tail * p.shape.channels};
    }
  }
  return {Span<const float>{p.in}, uint64_t{steps[at].row} * p.shape.row_elements};
}

/// A channel of a step behind the convolution; where the step keeps a state, its tail is written too.
CANOPY_DEVICE float convolved(const DeltaInputsParams& p, uint32_t step, uint32_t kept, uint32_t channel) {
  float sum = p.conv_bias != 0 ? Span<const float>{p.conv_bias}[channel] : 0.0f;
  for (uint32_t t = 0; t < p.shape.taps; ++t) {
    const TapInput input = tap_input(p, step, p.shape.taps - 1 - t);
    const float x = input.from[input.at + channel];
    sum = fmaf(Span<const float>{p.taps}[uint64_t{channel} * p.shape.taps + t], x, sum);
    if (t == 0 || kept >= DeltaStep::kSpare) continue;
    const uint64_t to = (uint64_t{kept} * (p.shape.taps - 1) + t - 1) * p.shape.channels;
    Span<float>{p.tails}[to + channel] = x;
  }
  return sum / (1.0f + expf(-sum));
}

CANOPY_DEVICE void write_decays(const DeltaInputsParams& p, uint64_t row) {
  const uint32_t heads = p.shape.value_heads;
  const Span<const float> in{p.in};
  const Span<float> out{p.out};
  for (uint32_t h = gpu::lane(); h < heads; h += 32) {
    const uint64_t at = row + p.shape.channels + h;
    const bool corrects = p.shape.corrects != 0;
    const float x = in[corrects ? at + heads : at] + Span<const float>{p.bias}[h];
    // A scan multiplies by it, so that its last digits count where it is small.
    const float softplus = x > 20.0f ? x : corrects ? logf(1.0f + expf(x)) : log1pf(expf(x));
    out[at] = corrects ? 1.0f / (1.0f + expf(-in[at])) : softplus;
    out[at + heads] = expf(Span<const float>{p.rate}[h] * softplus);
  }
}

// One warp per head and step: query heads, key heads, value heads, then the numbers of all value heads.
CANOPY_KERNEL(delta_inputs, DeltaInputsParams, 32) {
  const DeltaShapeParams& shape = p.shape;
  const uint32_t unit = gpu::block_x();
  const DeltaStep step = Span<const DeltaStep>{p.steps}[gpu::block_y()];
  if (step.row == DeltaStep::kNone) return;
  const uint64_t row = uint64_t{step.row} * shape.row_elements;
  if (unit == 2 * shape.key_heads + shape.value_heads) return write_decays(p, row);
  const bool is_value = unit >= 2 * shape.key_heads;
  const uint32_t dim = is_value ? shape.value_dim : shape.key_dim;
  const uint32_t first = is_value ? 2 * shape.key_heads * shape.key_dim + (unit - 2 * shape.key_heads) * shape.value_dim
                                  : unit * shape.key_dim;
  const Span<float> out{p.out};
  float squares = 0;
  for (uint32_t c = gpu::lane(); c < dim; c += 32) {
    const float y = convolved(p, gpu::block_y(), step.to, first + c);
    out[row + first + c] = y;
    squares = fmaf(y, y, squares);
  }
  if (is_value || shape.corrects == 0) return;
  const float scale = (unit < shape.key_heads ? p.query_scale : 1.0f) / sqrtf(sum_of_warp(squares) + p.eps);
  for (uint32_t c = gpu::lane(); c < dim; c += 32) out[row + first + c] = out[row + first + c] * scale;
}

struct alignas(16) StateQuad {
  float x[4];
};

/// The sum over the lanes of a column, which all of them get.
CANOPY_DEVICE float sum_of_column(float own) {
  CANOPY_UNROLL
  for (uint32_t mask = 1; mask < kColumnLanes; mask *= 2) own = own + gpu::shuffle_xor(own, mask);
  return own;
}

/// What a lane has of a column of a state, in registers. No other thread meets it but in sums, so there is no barrier,
/// and what a lane puts aside it takes back itself.
struct StateColumn {
  static constexpr uint32_t kQuads = kMostKeyDim / 4 / kColumnLanes;
  StateQuad s[kQuads];

  /// StateQuad i of this lane among those of the column.
  CANOPY_DEVICE static uint32_t quad(uint32_t i) { return i * kColumnLanes + gpu::lane() % kColumnLanes; }

  CANOPY_DEVICE void take(const Span<const float>& from, uint64_t at, const DeltaShapeParams& shape) {
    CANOPY_UNROLL
    for (uint32_t i = 0; i < kQuads; ++i) {
      if (4 * quad(i) >= shape.key_dim) continue;
      CANOPY_UNROLL
      for (uint32_t e = 0; e < 4; ++e) s[i].x[e] = from[at + uint64_t{4 * quad(i) + e} * shape.value_dim];
    }
  }

  CANOPY_DEVICE void put(const Span<float>& to, uint64_t at, const DeltaShapeParams& shape) const {
    CANOPY_UNROLL
    for (uint32_t i = 0; i < kQuads; ++i) {
      if (4 * quad(i) >= shape.key_dim) continue;
      CANOPY_UNROLL
      for (uint32_t e = 0; e < 4; ++e) to[at + uint64_t{4 * quad(i) + e} * shape.value_dim] = s[i].x[e];
    }
  }

  /// S <- decay S; S^T key.
  CANOPY_DEVICE float decayed(float decay, const Span<const StateQuad>& in, uint64_t key, uint32_t key_dim) {
    float sums[4] = {0, 0, 0, 0};
    CANOPY_UNROLL
    for (uint32_t i = 0; i < kQuads; ++i) {
      if (4 * quad(i) >= key_dim) continue;
      const StateQuad keys = in[key + quad(i)];
      CANOPY_UNROLL
      for (uint32_t e = 0; e < 4; ++e) {
        s[i].x[e] = s[i].x[e] * decay;
        sums[e] = fmaf(s[i].x[e], keys.x[e], sums[e]);
      }
    }
    return sum_of_column((sums[0] + sums[1]) + (sums[2] + sums[3]));
  }

  /// S <- decay S + key u^T; S^T query.
  CANOPY_DEVICE float updated(float decay, float u, const Span<const StateQuad>& in, uint64_t key, uint64_t query,
                              uint32_t key_dim) {
    float sums[4] = {0, 0, 0, 0};
    CANOPY_UNROLL
    for (uint32_t i = 0; i < kQuads; ++i) {
      if (4 * quad(i) >= key_dim) continue;
      const StateQuad keys = in[key + quad(i)], queries = in[query + quad(i)];
      CANOPY_UNROLL
      for (uint32_t e = 0; e < 4; ++e) {
        s[i].x[e] = fmaf(keys.x[e], u, s[i].x[e] * decay);
        sums[e] = fmaf(s[i].x[e], queries.x[e], sums[e]);
      }
    }
    return sum_of_column((sums[0] + sums[1]) + (sums[2] + sums[3]));
  }
};

// Grid: blocks of columns of a head's state, value heads. Lanes beyond the columns repeat the last and write nothing.
template <bool kCorrects>
CANOPY_DEVICE void go_through_steps(const DeltaNetParams& p) {
  const DeltaShapeParams& shape = p.shape;
  const uint32_t column = gpu::block_x() * kStateColumns + gpu::thread() / kColumnLanes, head = gpu::block_y();
  const bool is_one = column < shape.value_dim;
  const uint32_t j = is_one ? column : shape.value_dim - 1;
  const uint32_t group = shape.value_heads / shape.key_heads;
  const uint32_t key_head = shape.tiled != 0 ? head % shape.key_heads : head / group;
  const uint32_t keys = shape.key_heads * shape.key_dim, values = shape.value_heads * shape.value_dim;
  const uint64_t state_size = uint64_t{values} * shape.key_dim,
                 offset = uint64_t{head} * shape.key_dim * shape.value_dim;
  const Span<const float> in{p.in};
  const Span<const StateQuad> quads{p.in};
  StateColumn state = {};
  for (uint32_t i = 0; i < p.step_count; ++i) {
    const DeltaStep step = Span<const DeltaStep>{p.steps}[i];
    if (step.row == DeltaStep::kNone) continue;
    if (step.from != DeltaStep::kNone) {
      const uint64_t from = (step.from & DeltaStep::kSpare) != 0 ? p.spare : p.states;
      state.take(Span<const float>{from}, (step.from & ~DeltaStep::kSpare) * state_size + offset + j, shape);
    }
    const uint64_t row = uint64_t{step.row} * shape.row_elements, gates = row + shape.channels + head;
    const uint64_t query = (row + key_head * shape.key_dim) / 4, key = query + keys / 4;
    const float decay = in[gates + shape.value_heads];
    float result;
    if constexpr (kCorrects) {
      const float known = state.decayed(decay, quads, key, shape.key_dim);
      const float u = in[gates] * (in[row + 2 * keys + head * shape.value_dim + j] - known);
      result = state.updated(1, u, quads, key, query, shape.key_dim);
    } else {
      const float value = in[row + 2 * keys + head * shape.value_dim + j];
      result = state.updated(decay, in[gates] * value, quads, key, query, shape.key_dim);
      result = fmaf(Span<const float>{p.skip}[head], value, result);
    }
    if (!is_one) continue;
    if (p.out != 0 && gpu::lane() % kColumnLanes == 0) {
      Span<float>{p.out}[uint64_t{step.row} * values + head * shape.value_dim + j] = result;
    }
    if (step.to != DeltaStep::kNone) {
      const uint64_t to = (step.to & DeltaStep::kSpare) != 0 ? p.spare : p.states;
      state.put(Span<float>{to}, (step.to & ~DeltaStep::kSpare) * state_size + offset + j, shape);
    }
  }
}

CANOPY_KERNEL(delta_net, DeltaNetParams, 128) {
  go_through_steps<true>(p);
}
CANOPY_KERNEL(scan, DeltaNetParams, 128) {
  go_through_steps<false>(p);
}

/// B x of a column `up` rows above a step's: found by parents, and beyond the pass in the tail of the text.
CANOPY_DEVICE float gated_above(const ShortConvParams& p, uint32_t step, uint32_t up, uint32_t column) {
  const Span<const DeltaStep> steps{p.steps};
  uint32_t at = step;
  for (uint32_t t = 0; t < up; ++t) {
    const DeltaStep below = steps[at];
    at = below.parent;
    if (at != DeltaStep::kNone) continue;
    const uint64_t row = uint64_t{below.from} * (p.taps - 1) + p.taps - 1 - (up - t);
    return Span<const float>{p.tails}[row * p.cols + column];
  }
  const uint64_t first = uint64_t{steps[at].row} * 3 * p.cols + column;
  return Span<const float>{p.in}[first] * Span<const float>{p.in}[first + 2 * uint64_t{p.cols}];
}

// A block for each step.
CANOPY_KERNEL(short_conv, ShortConvParams, 128) {
  const uint32_t at = gpu::block_x();
  const DeltaStep step = Span<const DeltaStep>{p.steps}[at];
  if (step.row == DeltaStep::kNone) return;
  for (uint32_t c = gpu::thread(); c < p.cols; c += gpu::threads()) {
    float sum = 0;
    for (uint32_t t = 0; t < p.taps; ++t) {
      const float x = gated_above(p, at, p.taps - 1 - t, c);
      sum = fmaf(Span<const float>{p.kernel}[uint64_t{c} * p.taps + t], x, sum);
      if (t == 0 || step.to >= DeltaStep::kSpare) continue;
      Span<float>{p.tails}[(uint64_t{step.to} * (p.taps - 1) + t - 1) * p.cols + c] = x;
    }
    if (p.out.values == 0) continue;
    const float outer = Span<const float>{p.in}[(uint64_t{step.row} * 3 + 1) * p.cols + c];
    store_activation(p.out, step.row, c, outer * sum, 1);
  }
  if (p.out.values != 0 && gpu::warp() == 0) pad_row(p.out, step.row);
}

// One warp per head and row.
CANOPY_KERNEL(gated_norm, GatedNormParams, 32) {
  const uint32_t w = gpu::block_y(), first = gpu::block_x() * p.head_dim;
  const uint64_t from = uint64_t{w} * p.out.cols + first;
  const Span<const float> in{p.in}, gate{p.gate};
  float squares = 0;
  const auto open_of = [&](uint32_t d) {
    const float g = gate[from + d];
    return g / (1.0f + expf(-g));
  };
  for (uint32_t d = gpu::lane(); d < p.head_dim; d += 32) {
    const float x = p.gate_within != 0 ? in[from + d] * open_of(d) : in[from + d];
    squares = fmaf(x, x, squares);
  }
  const float factor = 1.0f / sqrtf(sum_of_warp(squares) / static_cast<float>(p.head_dim) + p.eps);
  for (uint32_t d = gpu::lane(); d < p.head_dim; d += 32) {
    const Span<const float> weight{p.weight};
    const float x = in[from + d], open = open_of(d);
    store_activation(p.out, w, first + d,
                     p.gate_within != 0 ? x * open * factor * weight[first + d] : x * factor * weight[d] * open, 1);
  }
  if (gpu::block_x() == 0) pad_row(p.out, w);
}

CANOPY_KERNEL(gate, GateParams, 128) {
  const uint64_t w = gpu::block_x();
  for (uint32_t c = gpu::thread(); c < p.x.cols; c += gpu::threads()) {
    const float x = Span<const float>{p.x.values}[w * p.x.stride + c];
    store_activation(p.x, w, c, x / (1.0f + expf(-Span<const float>{p.gate}[w * p.x.cols + c])), 1);
  }
}

CANOPY_KERNEL(square_relu, SquareReluParams, 128) {
  const uint64_t w = gpu::block_x();
  for (uint32_t c = gpu::thread(); c < p.out.cols; c += gpu::threads()) {
    const float x = Span<const float>{p.in}[w * p.out.cols + c];
    store_activation(p.out, w, c, x <= 0 ? 0.0f : x * x, 1);
  }
  if (gpu::warp() == 0) pad_row(p.out, gpu::block_x());
}

CANOPY_KERNEL(gate_inputs, GateInputsParams, 128) {
  const uint64_t w = gpu::block_x();
  for (uint32_t c = gpu::thread(); c < p.out.cols; c += gpu::threads()) {
    const float gate = p.scale * Span<const float>{p.gate}[w * p.out.cols + c];
    const float steep = 1.59576912f * (gate + 0.044715f * gate * gate * gate);
    store_activation(p.out, w, c,
                     gate / (1.0f + expf(-steep)) * Span<const float>{p.inputs}[w * p.stride + p.offset + c], 1);
  }
  if (gpu::warp() == 0) pad_row(p.out, gpu::block_x());
}

}  // namespace canopy::cuda
