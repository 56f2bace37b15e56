// out[w, c] = max(in, 0)^2

#include <limits>

#include "tests/reference/memory.h"
#include "tests/reference/ops.h"

namespace canopy::reference {

template <>
void compute(const SquareReluArgs& args) {
  require(args.out != nullptr, "square_relu: out is missing.");
  const uint32_t cols = args.out->cols();
  const auto in = elements<float>(args.in, uint64_t{args.width} * cols, "square_relu: in");
  HostActivations& out = written_activations(args.out, args.width, cols, "square_relu: out");
  for (uint32_t w = 0; w < args.width; ++w) {
    for (uint32_t c = 0; c < cols; ++c) {
      const double x = in[size_t{w} * cols + c];
      out.row(w)[c] = x <= 0 ? 0 : static_cast<float>(x * x);
    }
    out.sum_of_squares(w) = std::numeric_limits<double>::quiet_NaN();
  }
}

}  // namespace canopy::reference
