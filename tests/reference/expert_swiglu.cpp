// g = scale(w) * sum_k weight[2 f, k] * in[w, k] + bias[2 f] with the rows of expert chosen[w, i]; u: row 2 f + 1
// out[w * used + i, f] = f(g) * u,   silu(g) = g / (1 + exp(-g)), gelu as in linear_swiglu
// with a limit l: (u' + 1) * g' / (1 + exp(-1.702 g')),   g' = min(g, l),   u' = min(max(u, -l), l)

#include <cmath>
#include <limits>
#include <numbers>

#include "tests/reference/experts.h"
#include "tests/reference/ops.h"

namespace canopy::reference {

namespace {

double gated(double gate, double up, double limit, GateFunction function) {
  if (limit == 0 && function == GateFunction::gelu) {
    return 0.5 * gate * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (gate + 0.044715 * gate * gate * gate))) * up;
  }
  if (limit == 0) return gate / (1.0 + std::exp(-gate)) * up;
  const double low = gate > limit ? limit : gate, clamped = up > limit    ? limit
                                                            : up < -limit ? -limit
                                                                          : up;  // keeps NaN
  return (clamped + 1.0) * low / (1.0 + std::exp(-double{kClampedSlope} * low));
}

}  // namespace

template <>
void compute(const ExpertSwigluArgs& args) {
  const HostWeight& weight = host_weight(args.weight, "expert_swiglu: weight");
  const uint32_t rows = rows_of_expert(weight, args.experts, "expert_swiglu"), used = args.experts.used;
  require(rows % 2 == 0, "expert_swiglu: an expert has an odd number of rows, so they are not paired.");
  const HostActivations& in = read_activations(args.in, args.width, weight.cols(), "expert_swiglu: in");
  HostActivations& out = written_activations(args.out, args.width * used, rows / 2, "expert_swiglu: out");
  const auto chosen = chosen_experts(args.chosen, args.width, args.experts, "expert_swiglu");
  const std::vector<float> bias = bias_of_rows(args.bias, weight.rows(), "expert_swiglu: bias");
  require(args.out != args.in, "expert_swiglu: in and out are the same activations.");

  for (uint32_t pair = 0; pair < args.width * used; ++pair) {
    const uint32_t w = pair / used;
    const auto products = expert_products(weight, chosen[pair], rows, in.row(w), in.norm_scale(w, args.norm_eps), bias);
    for (uint32_t f = 0; f < rows / 2; ++f) {
      out.row(pair)[f] = static_cast<float>(gated(products[2 * f], products[2 * f + 1], args.limit, args.gate));
    }
    out.sum_of_squares(pair) = std::numeric_limits<double>::quiet_NaN();
  }
}

}  // namespace canopy::reference
