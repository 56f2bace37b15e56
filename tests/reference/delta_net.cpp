// Per step and value head:  S <- d S;  u = b (v - S^T k);  S <- S + k u^T;  out = S^T q; of a scan u = b v and
// out = S^T q + skip v. States are f32: each element is rounded as it is changed.

#include <algorithm>
#include <vector>

#include "tests/reference/memory.h"
#include "tests/reference/ops.h"

namespace canopy::reference {
namespace {

/// One value head of one step.
struct HeadStep {
  const float* query;
  const float* key;
  const float* value;
  float beta, decay, skip;
};

/// `state` is [key_dim, value_dim], out [value_dim] or null.
void advance(const DeltaShape& shape, const HeadStep& step, float* state, float* out) {
  for (uint32_t j = 0; j < shape.value_dim; ++j) {
    double known = 0, result = double{step.skip} * step.value[j];
    for (uint32_t k = 0; k < shape.key_dim; ++k) {
      float& s = state[size_t{k} * shape.value_dim + j];
      s = s * step.decay;
      if (shape.corrects) known += double{s} * step.key[k];
    }
    const float u = static_cast<float>(step.beta * (step.value[j] - known));
    for (uint32_t k = 0; k < shape.key_dim; ++k) {
      float& s = state[size_t{k} * shape.value_dim + j];
      s = static_cast<float>(s + double{step.key[k]} * u);
      result += double{s} * step.query[k];
    }
    if (out != nullptr) out[j] = static_cast<float>(result);
  }
}

}  // namespace

template <>
void compute(const DeltaNetArgs& args) {
  const DeltaShape& shape = args.shape;
  check_delta_shape(shape, "delta_net");
  const uint64_t size = shape.row_elements(), values = shape.values(), state_size = shape.state_elements();
  const auto in = elements<float>(args.in, args.rows * size, "delta_net: in");
  const auto steps = elements<DeltaStep>(args.steps, args.width, "delta_net: steps");
  std::span<float> out;
  std::span<const float> skip;
  require((args.skip != nullptr) == !shape.corrects, "delta_net: a skip belongs to scans, and each has one.");
  if (args.skip != nullptr) skip = elements<float>(args.skip, shape.value_heads, "delta_net: skip");
  if (args.out != nullptr) out = elements<float>(args.out, args.rows * values, "delta_net: out");
  const auto place = [&](uint32_t at) {
    const uint64_t index = at & ~DeltaStep::kSpare;
    Buffer* whole = (at & DeltaStep::kSpare) != 0 ? args.spare : args.states;
    return elements<float>(whole, (index + 1) * state_size, "delta_net: states").data() + index * state_size;
  };
  std::vector<float> state(state_size);
  for (const DeltaStep& step : steps) {
    if (step.row == DeltaStep::kNone) continue;
    require(step.row < args.rows, "delta_net: a step names a row beyond the pass.");
    if (step.from != DeltaStep::kNone) std::copy_n(place(step.from), state_size, state.begin());
    const float* row = in.data() + step.row * size;
    for (uint32_t h = 0; h < shape.value_heads; ++h) {
      const size_t key = size_t{shape.key_head(h)} * shape.key_dim, value = size_t{h} * shape.value_dim;
      const HeadStep head{row + key,
                          row + shape.keys() + key,
                          row + 2 * shape.keys() + value,
                          row[shape.channels() + h],
                          row[shape.channels() + shape.value_heads + h],
                          skip.empty() ? 0 : skip[h]};
      advance(shape, head, state.data() + value * shape.key_dim,
              out.empty() ? nullptr : out.data() + step.row * values + value);
    }
    if (step.to != DeltaStep::kNone) std::copy(state.begin(), state.end(), place(step.to));
  }
}

}  // namespace canopy::reference
