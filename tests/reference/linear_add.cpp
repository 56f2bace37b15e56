// x[w, r] += sum_k weight[r, k] * in[w, k]
// out[w] = x[w] * norm.weight, with the sum of squares of x[w]
// aux[w, aux_offset + r] = x[w, r]

#include "tests/reference/matrix_product.h"
#include "tests/reference/memory.h"
#include "tests/reference/ops.h"

namespace canopy::reference {

template <>
void compute(const LinearAddArgs& args) {
  const HostWeight& weight = host_weight(args.weight, "linear_add: weight");
  const uint32_t rows = weight.rows();
  const HostActivations& in = read_activations(args.in, args.width, weight.cols(), "linear_add: in");
  const auto x = elements<float>(args.x, uint64_t{args.width} * rows, "linear_add: x");
  const auto norm = elements<float>(args.norm.weight, rows, "linear_add: norm weight");
  HostActivations& out = written_activations(args.out, args.width, rows, "linear_add: out");
  std::span<float> aux;
  if (args.aux != nullptr) {
    aux = elements<float>(args.aux, uint64_t{args.width} * args.aux_stride, "linear_add: tap");
    require(uint64_t{args.aux_offset} + rows <= args.aux_stride, "linear_add: tap offset + rows exceed its stride.");
  }
  require(args.out != args.in, "linear_add: in and out are the same activations.");

  for (uint32_t w = 0; w < args.width; ++w) {
    const ProductInput input(in, w, 0, weight);
    float* residual = x.data() + size_t{w} * rows;
    for (uint32_t r = 0; r < rows; ++r) {
      residual[r] = static_cast<float>(residual[r] + input.times(r));
      out.row(w)[r] = residual[r] * norm[r];
      if (!aux.empty()) aux[size_t{w} * args.aux_stride + args.aux_offset + r] = residual[r];
    }
    out.sum_of_squares(w) = sum_of_squares(residual, rows);
  }
}

}  // namespace canopy::reference
