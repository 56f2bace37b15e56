// out[w] = in[w] * norm.weight, or in[w] where there is none, with the sum of squares of in[w]

#include "tests/reference/matrix_product.h"
#include "tests/reference/memory.h"
#include "tests/reference/ops.h"

namespace canopy::reference {

template <>
void compute(const NormRowsArgs& args) {
  require(args.out != nullptr, "norm_rows: out is missing.");
  const uint32_t cols = args.out->cols();
  HostActivations& out = written_activations(args.out, args.width, cols, "norm_rows: out");
  const auto in = elements<float>(args.in, uint64_t{args.width} * cols, "norm_rows: in");
  std::span<const float> norm;
  if (args.norm.weight != nullptr) norm = elements<float>(args.norm.weight, cols, "norm_rows: norm weight");

  for (uint32_t w = 0; w < args.width; ++w) {
    const float* row = in.data() + size_t{w} * cols;
    for (uint32_t c = 0; c < cols; ++c) out.row(w)[c] = norm.empty() ? row[c] : row[c] * norm[c];
    out.sum_of_squares(w) = sum_of_squares(row, cols);
  }
}

}  // namespace canopy::reference
