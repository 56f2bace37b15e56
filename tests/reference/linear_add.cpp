// x[w, r] += sum_k weight[r, k] * in[w, k]
// out[w] = x[w] * norm.weight, with the sum of squares of x[w]
// tap[w, tap_offset + r] = x[w, r]

#include "tests/reference/matrix_product.h"
#include "tests/reference/memory.h"
#include "tests/reference/ops.h"

namespace canopy::reference {

template <>
void compute(const LinearAddArgs& args) {
  const HostWeight& weight = host_weight(args.weight, "linear_add: weight");
  const uint32_t rows = weight.rows();
  const HostPanel& in = read_panel(args.in, args.width, weight.cols(), "linear_add: in");
  const auto x = elements<float>(args.x, uint64_t{args.width} * rows, "linear_add: x");
  const auto norm = elements<float>(args.norm.weight, rows, "linear_add: norm weight");
  HostPanel& out = written_panel(args.out, args.width, rows, "linear_add: out");
  std::span<float> tap;
  if (args.tap != nullptr) {
    tap = elements<float>(args.tap, uint64_t{args.width} * args.tap_stride, "linear_add: tap");
    require(uint64_t{args.tap_offset} + rows <= args.tap_stride, "linear_add: tap offset + rows exceed its stride.");
  }
  require(args.out != args.in, "linear_add: in and out are the same panel.");

  for (uint32_t w = 0; w < args.width; ++w) {
    float* residual = x.data() + size_t{w} * rows;
    for (uint32_t r = 0; r < rows; ++r) {
      residual[r] = static_cast<float>(residual[r] + dot(weight.row(r), in.row(w), weight.cols()));
      out.row(w)[r] = residual[r] * norm[r];
      if (!tap.empty()) tap[size_t{w} * args.tap_stride + args.tap_offset + r] = residual[r];
    }
    out.sum_of_squares(w) = sum_of_squares(residual, rows);
  }
}

}  // namespace canopy::reference
