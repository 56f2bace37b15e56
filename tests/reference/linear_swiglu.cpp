// g = scale(w) * sum_k weight[2 i, k] * in[w, k]          u = the same with row 2 i + 1
// out[w, i] = f(g) * u with f(g) = silu(g) = g / (1 + exp(-g)), or gelu(g) = g / 2 (1 + tanh(sqrt(2 / pi) (g + 0.044715
// g^3)))

#include <cmath>
#include <limits>
#include <numbers>

#include "tests/reference/matrix_product.h"
#include "tests/reference/memory.h"
#include "tests/reference/ops.h"

namespace canopy::reference {
namespace {

double gated(GateFunction function, double g) {
  if (function == GateFunction::silu) return g / (1.0 + std::exp(-g));
  return 0.5 * g * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (g + 0.044715 * g * g * g)));
}

}  // namespace

template <>
void compute(const LinearSwigluArgs& args) {
  const HostWeight& weight = host_weight(args.weight, "linear_swiglu: weight");
  require(weight.rows() % 2 == 0, "linear_swiglu: the weight is not paired, it has an odd number of rows.");
  const uint32_t ffn = weight.rows() / 2;
  const HostActivations& in = read_activations(args.in, args.width, weight.cols(), "linear_swiglu: in");
  HostActivations& out = written_activations(args.out, args.width, ffn, "linear_swiglu: out");
  require(args.out != args.in, "linear_swiglu: in and out are the same activations.");

  for (uint32_t w = 0; w < args.width; ++w) {
    const ProductInput input(in, w, args.norm_eps, weight);
    for (uint32_t i = 0; i < ffn; ++i) {
      const double gate = input.times(2 * i);
      const double up = input.times(2 * i + 1);
      out.row(w)[i] = static_cast<float>(gated(args.gate, gate) * up);
    }
    out.sum_of_squares(w) = std::numeric_limits<double>::quiet_NaN();
  }
}

}  // namespace canopy::reference
