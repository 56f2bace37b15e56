// out[w, h] = in / sqrt(mean(in^2) + eps) * weight * silu(gate) for each head h; or with x = in * silu(gate)
// x / sqrt(mean(x^2) + eps) * weight[h]

#include <cmath>
#include <limits>
#include <vector>

#include "tests/reference/matrix_product.h"
#include "tests/reference/memory.h"
#include "tests/reference/ops.h"

namespace canopy::reference {

template <>
void compute(const GatedNormArgs& args) {
  const uint32_t cols = args.heads * args.head_dim;
  const auto in = elements<float>(args.in, uint64_t{args.width} * cols, "gated_norm: in");
  const auto gate = elements<float>(args.gate, uint64_t{args.width} * cols, "gated_norm: gate");
  const auto weight = elements<float>(args.weight, args.weights(), "gated_norm: weight");
  HostActivations& out = written_activations(args.out, args.width, cols, "gated_norm: out");
  for (uint32_t w = 0; w < args.width; ++w) {
    for (uint32_t h = 0; h < args.heads; ++h) {
      const size_t at = size_t{h} * args.head_dim;
      const float* head = in.data() + size_t{w} * cols + at;
      const float* gates = gate.data() + size_t{w} * cols + at;
      std::vector<double> open(args.head_dim);
      double squares = args.gate_within ? 0 : sum_of_squares(head, args.head_dim);
      for (uint32_t d = 0; d < args.head_dim; ++d) {
        open[d] = gates[d] / (1 + std::exp(-double{gates[d]}));
        if (args.gate_within) squares += head[d] * open[d] * head[d] * open[d];
      }
      const double scale = 1 / std::sqrt(squares / args.head_dim + args.eps);
      for (uint32_t d = 0; d < args.head_dim; ++d) {
        out.row(w)[at + d] = static_cast<float>(head[d] * scale * weight[args.gate_within ? at + d : d] * open[d]);
      }
    }
    out.sum_of_squares(w) = std::numeric_limits<double>::quiet_NaN();
  }
}

}  // namespace canopy::reference
