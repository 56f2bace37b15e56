// The window of a step: the inputs of its row and, going up by parents, of the taps - 1 before; beyond the pass those
// of the text's tail, whose last is the newest. x[c] = silu(sum_t taps[c, t] window[t, c] + conv_bias[c]) queries x /
// (sqrt(sum x^2 + eps) sqrt(key_dim)), keys x / sqrt(sum x^2 + eps), values x beta = 1 / (1 + exp(-b)), decay =
// exp(rate log(1 + exp(a + bias))); of a scan queries and keys x, beta = log(1 + exp(a + bias))

#include <algorithm>
#include <cmath>
#include <vector>

#include "tests/reference/matrix_product.h"
#include "tests/reference/memory.h"
#include "tests/reference/ops.h"

namespace canopy::reference {
namespace {

struct Inputs {
  const DeltaInputsArgs& args;
  std::span<const float> in;
  std::span<const DeltaStep> steps;

  /// The window's inputs, oldest first: [taps, channels].
  std::vector<const float*> window(uint32_t step) const {
    const uint32_t count = args.shape.taps;
    std::vector<const float*> rows(count);
    uint32_t at = step, last = step, beyond = 0;
    for (uint32_t t = count; t-- > 0;) {
      if (at != DeltaStep::kNone) {
        rows[t] = in.data() + size_t{steps[at].row} * args.shape.row_elements();
        last = at;
        at = steps[at].parent;
        require(at == DeltaStep::kNone || at < last, "delta_inputs: a step comes before that of its parent.");
      } else {
        rows[t] = tail(steps[last].from) + size_t{count - 2 - beyond++} * args.shape.channels();
      }
    }
    return rows;
  }

  const float* tail(uint32_t kept) const {
    require(kept < DeltaStep::kSpare, "delta_inputs: a row without a parent takes no kept state.");
    const uint64_t size = args.shape.tail_elements();
    return elements<float>(static_cast<const Buffer*>(args.tails), (uint64_t{kept} + 1) * size, "delta_inputs: tails")
               .data() +
           kept * size;
  }
};

float silu(double x) {
  return static_cast<float>(x / (1 + std::exp(-x)));
}

void normalize(float* head, uint32_t dim, double factor) {
  const double scale = factor / std::sqrt(sum_of_squares(head, dim) + DeltaInputsArgs::kEps);
  for (uint32_t i = 0; i < dim; ++i) head[i] = static_cast<float>(head[i] * scale);
}

double softplus(double x) {
  return x > 20 ? x : std::log1p(std::exp(x));
}

}  // namespace

template <>
void compute(const DeltaInputsArgs& args) {
  const DeltaShape& shape = args.shape;
  check_delta_shape(shape, "delta_inputs");
  const uint64_t size = shape.row_elements(), channels = shape.channels(), heads = shape.value_heads;
  const Inputs inputs{args, elements<float>(args.in, args.rows * size, "delta_inputs: in"),
                      elements<DeltaStep>(args.steps, args.width, "delta_inputs: steps")};
  const auto out = elements<float>(args.out, args.rows * size, "delta_inputs: out");
  const auto taps = elements<float>(args.taps, channels * shape.taps, "delta_inputs: taps");
  const auto bias = elements<float>(args.bias, heads, "delta_inputs: bias");
  const auto rate = elements<float>(args.rate, heads, "delta_inputs: rate");
  std::span<const float> conv_bias;
  if (args.conv_bias != nullptr) conv_bias = elements<float>(args.conv_bias, channels, "delta_inputs: conv_bias");
  for (uint32_t i = 0; i < args.width; ++i) {
    const DeltaStep& step = inputs.steps[i];
    if (step.row == DeltaStep::kNone) continue;
    require(step.row < args.rows, "delta_inputs: a step names a row beyond the pass.");
    const std::vector<const float*> window = inputs.window(i);
    float* to = out.data() + step.row * size;
    for (uint64_t c = 0; c < channels; ++c) {
      double sum = conv_bias.empty() ? 0 : conv_bias[c];
      for (uint32_t t = 0; t < shape.taps; ++t) sum += double{taps[c * shape.taps + t]} * window[t][c];
      to[c] = silu(sum);
    }
    for (uint32_t h = 0; shape.corrects && h < shape.key_heads; ++h) {
      normalize(to + h * shape.key_dim, shape.key_dim, 1 / std::sqrt(static_cast<double>(shape.key_dim)));
      normalize(to + shape.keys() + h * shape.key_dim, shape.key_dim, 1);
    }
    const float* gates = window.back() + channels;
    for (uint64_t h = 0; h < heads; ++h) {
      const double a = gates[shape.corrects ? heads + h : h], soft = softplus(a + double{bias[h]});
      to[channels + h] = static_cast<float>(shape.corrects ? 1 / (1 + std::exp(-double{gates[h]})) : soft);
      to[channels + heads + h] = static_cast<float>(std::exp(rate[h] * soft));
    }
    if (step.to >= DeltaStep::kSpare) continue;  // keeps nothing
    float* kept = const_cast<float*>(inputs.tail(step.to));
    std::vector<float> tail;  // before it is written: the window may be the same memory's
    for (uint32_t t = 1; t < shape.taps; ++t) tail.insert(tail.end(), window[t], window[t] + channels);
    std::copy(tail.begin(), tail.end(), kept);
  }
}

}  // namespace canopy::reference
