// x[w] = x_scale * (x[w] + in[w] / sqrt(mean(in[w]^2) + eps) * weight)
// out[w] = x[w] * norm.weight, with the sum of squares of x[w]
// aux[w, aux_offset + c] = aux_scale * x[w, c]

#include <cmath>

#include "tests/reference/matrix_product.h"
#include "tests/reference/memory.h"
#include "tests/reference/ops.h"

namespace canopy::reference {

template <>
void compute(const NormAddArgs& args) {
  require(args.out != nullptr, "norm_add: out is missing.");
  const uint32_t cols = args.out->cols();
  const auto in = elements<float>(args.in, uint64_t{args.width} * cols, "norm_add: in");
  const auto weight = elements<float>(args.weight, cols, "norm_add: weight");
  const auto x = elements<float>(args.x, uint64_t{args.width} * cols, "norm_add: x");
  const auto norm = elements<float>(args.norm.weight, cols, "norm_add: norm weight");
  HostActivations& out = written_activations(args.out, args.width, cols, "norm_add: out");
  std::span<float> aux;
  if (args.aux != nullptr) {
    aux = elements<float>(args.aux, uint64_t{args.width} * args.aux_stride, "norm_add: aux");
    require(uint64_t{args.aux_offset} + cols <= args.aux_stride, "norm_add: aux offset + cols exceed its stride.");
  }
  require(args.in != args.x, "norm_add: in and x are the same buffer.");

  for (uint32_t w = 0; w < args.width; ++w) {
    const float* row = in.data() + size_t{w} * cols;
    float* residual = x.data() + size_t{w} * cols;
    const double factor = 1 / std::sqrt(sum_of_squares(row, cols) / cols + double{args.eps});
    for (uint32_t c = 0; c < cols; ++c) {
      residual[c] = static_cast<float>(args.x_scale * (residual[c] + row[c] * factor * weight[c]));
      out.row(w)[c] = residual[c] * norm[c];
      if (!aux.empty()) aux[size_t{w} * args.aux_stride + args.aux_offset + c] = args.aux_scale * residual[c];
    }
    out.sum_of_squares(w) = sum_of_squares(residual, cols);
  }
}

}  // namespace canopy::reference
