// Recurrences: gated delta nets, scans and short convolutions.

#include <cmath>

#include "engine/cpu/fixed_math.h"
#include "engine/cpu/steps.h"

namespace canopy::cpu {

void Compiler::add(const DeltaInputsArgs& args) {
  check_delta_shape(args.shape, "delta_inputs");
  const DeltaShape shape = args.shape;
  const uint32_t size = shape.row_elements(), channels = shape.channels(), heads = shape.value_heads;
  const float* in = elements(args.in, uint64_t{args.rows} * size, "delta_inputs: in");
  const DeltaStep* steps = elements<DeltaStep>(args.steps, args.width, "delta_inputs: steps");
  float* out = elements(args.out, uint64_t{args.rows} * size, "delta_inputs: out");
  const float* taps = elements(args.taps, uint64_t{channels} * shape.taps, "delta_inputs: taps");
  const float* bias = elements(args.bias, heads, "delta_inputs: bias");
  const float* rate = elements(args.rate, heads, "delta_inputs: rate");
  const float* conv_bias =
      args.conv_bias != nullptr ? elements(args.conv_bias, channels, "delta_inputs: conv_bias") : nullptr;
  float* tails = elements(args.tails, shape.tail_elements(), "delta_inputs: tails");
  const uint64_t tail_size = shape.tail_elements(), kept = args.tails->bytes() / sizeof(float) / tail_size;
  const auto work = [=, &k = k_, rows = args.rows](Worker& worker, uint32_t i) {
    const DeltaStep& step = steps[i];
    if (step.row >= rows) return;
    // The inputs of the row and of the taps - 1 before it, oldest first.
    const float* window[DeltaShape::kMostTaps];
    uint32_t at = i, last = i, beyond = 0;
    for (uint32_t t = shape.taps; t-- > 0;) {
      if (at != DeltaStep::kNone) {
        window[t] = in + size_t{std::min(steps[at].row, rows - 1)} * size;
        last = at;
        at = steps[at].parent < at ? steps[at].parent : DeltaStep::kNone;
      } else {
        window[t] = tails + std::min<uint64_t>(steps[last].from, kept - 1) * tail_size +
                    size_t{shape.taps - 2 - beyond++} * channels;
      }
    }
    float* to = out + size_t{step.row} * size;
    for (uint32_t c = 0; c < channels; ++c) {
      float sum = conv_bias != nullptr ? conv_bias[c] : 0;
      for (uint32_t t = 0; t < shape.taps; ++t) sum += taps[size_t{c} * shape.taps + t] * window[t][c];
      to[c] = sum;
    }
    k.silu(to, channels);
    const double query_scale = 1 / std::sqrt(static_cast<double>(shape.key_dim));
    for (uint32_t h = 0; shape.corrects && h < 2 * shape.key_heads; ++h) {
      float* head = to + size_t{h} * shape.key_dim;
      const double norm = 1 / std::sqrt(sum_of_squares(head, shape.key_dim) + double{DeltaInputsArgs::kEps});
      const auto scale = static_cast<float>(h < shape.key_heads ? norm * query_scale : norm);
      for (uint32_t d = 0; d < shape.key_dim; ++d) head[d] *= scale;
    }
    const float* gates = window[shape.taps - 1] + channels;
    for (uint32_t h = 0; h < heads; ++h) {
      const double soft = fixed_softplus(double{gates[shape.corrects ? heads + h : h]} + double{bias[h]});
      to[channels + h] = static_cast<float>(shape.corrects ? 1 / (1 + fixed_exp(-double{gates[h]})) : soft);
      to[channels + heads + h] = static_cast<float>(fixed_exp(rate[h] * soft));
    }
    if (step.to >= kept) return;  // keeps nothing
    // Gathered before it is written: the window may lie in the same memory.
    float* tail = worker.scratch();
    for (uint32_t t = 1; t < shape.taps; ++t) std::copy_n(window[t], channels, tail + size_t{t - 1} * channels);
    std::copy_n(tail, tail_size, tails + step.to * tail_size);
  };
  step_of_each(args.width, work, tail_size);
}

void Compiler::add(const DeltaNetArgs& args) {
  check_delta_shape(args.shape, "delta_net");
  const DeltaShape shape = args.shape;
  const uint32_t size = shape.row_elements(), channels = shape.channels(), dim = shape.value_dim;
  const uint64_t state_size = shape.state_elements();
  const float* in = elements(args.in, uint64_t{args.rows} * size, "delta_net: in");
  const DeltaStep* steps = elements<DeltaStep>(args.steps, args.width, "delta_net: steps");
  float* out =
      args.out != nullptr ? elements(args.out, uint64_t{args.rows} * shape.values(), "delta_net: out") : nullptr;
  require((args.skip != nullptr) == !shape.corrects, "delta_net: a skip belongs to scans, and each has one.");
  const float* skip = args.skip != nullptr ? elements(args.skip, shape.value_heads, "delta_net: skip") : nullptr;
  float* states = elements(args.states, 0, "delta_net: states");
  float* spare = args.spare != nullptr ? elements(args.spare, 0, "delta_net: spare") : nullptr;
  const uint64_t kept = args.states->bytes() / sizeof(float) / state_size;
  const uint64_t spares = args.spare != nullptr ? args.spare->bytes() / sizeof(float) / state_size : 0;
  const uint32_t groups = (dim + 15) / 16;  // of columns, each of which is a recurrence of its own
  const auto work = [=, &k = k_, rows = args.rows, width = args.width](Worker& worker, uint32_t unit) {
    const uint32_t h = unit / groups, column = unit % groups * 16, lanes = std::min(16u, dim - column);
    float* state = worker.scratch();  // [key_dim, 16]
    std::fill_n(state, size_t{shape.key_dim} * 16, 0.0f);
    const uint64_t head = uint64_t{h} * shape.key_dim * dim + column;
    const auto place = [&](uint32_t at) -> float* {
      const uint64_t index = at & ~DeltaStep::kSpare;
      if ((at & DeltaStep::kSpare) != 0) return index < spares ? spare + index * state_size + head : nullptr;
      return index < kept ? states + index * state_size + head : nullptr;
    };
    for (uint32_t s = 0; s < width; ++s) {
      const DeltaStep& step = steps[s];
      if (step.row >= rows) continue;
      if (step.from != DeltaStep::kNone) {
        const float* from = place(step.from);
        for (uint32_t i = 0; from != nullptr && i < shape.key_dim; ++i)
          std::copy_n(from + size_t{i} * dim, lanes, state + 16 * i);
      }
      const float* row = in + size_t{step.row} * size;
      const float* key = row + size_t{shape.key_head(h)} * shape.key_dim;
      float value[16] = {}, result[16];
      std::copy_n(row + 2 * size_t{shape.keys()} + size_t{h} * dim + column, lanes, value);
      // What is prepared has queries first.
      const float beta = row[channels + h], decay = row[channels + shape.value_heads + h];
      float* const to_read = out != nullptr ? result : nullptr;
      if (skip == nullptr) {
        k.delta_step(state, shape.key_dim, key, key + shape.keys(), value, beta, decay, to_read);
      } else {
        k.scan_step(state, shape.key_dim, key, key + shape.keys(), value, beta, decay, skip[h], to_read);
      }
      if (out != nullptr)
        std::copy_n(result, lanes, out + uint64_t{step.row} * shape.values() + size_t{h} * dim + column);
      if (step.to == DeltaStep::kNone) continue;
      float* to = place(step.to);
      for (uint32_t i = 0; to != nullptr && i < shape.key_dim; ++i)
        std::copy_n(state + 16 * i, lanes, to + size_t{i} * dim);
    }
  };
  step_of_each(shape.value_heads * groups, work, uint64_t{shape.key_dim} * 16);
}

void Compiler::add(const ShortConvArgs& args) {
  check_short_conv(args);
  const uint32_t cols = args.cols, taps = args.taps;
  const bool reads = args.out != nullptr;
  const uint32_t shown = args.out_rows();
  const RowsView out = reads ? rows_of(args.out, shown, cols, "short_conv: out") : RowsView{};
  const float* in = elements(args.in, uint64_t{args.rows} * 3 * cols, "short_conv: in");
  const DeltaStep* steps = elements<DeltaStep>(args.steps, args.width, "short_conv: steps");
  const float* kernel = elements(args.kernel, uint64_t{cols} * taps, "short_conv: kernel");
  float* tails = elements(args.tails, args.tail_elements(), "short_conv: tails");
  const uint64_t tail_size = args.tail_elements(), kept = args.tails->bytes() / sizeof(float) / tail_size;
  const uint32_t blocks = blocks_of(cols);
  const auto work = [=, &k = k_, rows = args.rows](Worker&, uint32_t unit) {
    const uint32_t i = unit / blocks, begin = unit % blocks * kBlock, count = std::min(kBlock, cols - begin);
    const DeltaStep& step = steps[i];
    if (step.row >= rows) return;
    struct Place {
      const float *gate, *x;  // x alone where it is a tail
    } window[ShortConvArgs::kMostTaps];
    uint32_t at = i, last = i, beyond = 0;
    for (uint32_t t = taps; t-- > 0;) {
      if (at != DeltaStep::kNone) {
        const float* row = in + size_t{std::min(steps[at].row, rows - 1)} * 3 * cols + begin;
        window[t] = {row, row + size_t{2} * cols};
        last = at;
        at = steps[at].parent < at ? steps[at].parent : DeltaStep::kNone;
      } else {
        window[t] = {nullptr, tails + std::min<uint64_t>(steps[last].from, kept - 1) * tail_size +
                                  size_t{taps - 2 - beyond++} * cols + begin};
      }
    }
    float sums[kBlock] = {}, gated[kBlock] = {};
    for (uint32_t t = 0; t < taps; ++t) {
      for (uint32_t c = 0; c < count; ++c) {
        gated[c] = window[t].gate != nullptr ? window[t].gate[c] * window[t].x[c] : window[t].x[c];
        sums[c] += kernel[size_t{begin + c} * taps + t] * gated[c];
      }
      // Oldest first: what is written here was read before, should it be the same memory.
      if (t > 0 && step.to < kept)
        std::copy_n(gated, count, tails + step.to * tail_size + size_t{t - 1} * cols + begin);
    }
    if (!reads || step.row >= shown) return;
    const float* outer = in + (size_t{step.row} * 3 + 1) * cols + begin;
    for (uint32_t c = 0; c < count; ++c) sums[c] *= outer[c];
    k.write_block(out, step.row, begin / kBlock, sums, nullptr);
  };
  step_of_each(args.width * blocks, work);
}

}  // namespace canopy::cpu
