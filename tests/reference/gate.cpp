// x[w, c] *= 1 / (1 + exp(-gate[w, c]))

#include <cmath>
#include <limits>

#include "tests/reference/memory.h"
#include "tests/reference/ops.h"

namespace canopy::reference {

template <>
void compute(const GateArgs& args) {
  require(args.x != nullptr, "gate: x is missing.");
  const uint32_t cols = args.x->cols();
  read_activations(args.x, args.width, cols, "gate: x");  // were written at this width
  HostActivations& x = written_activations(args.x, args.width, cols, "gate: x");
  const auto gate = elements<float>(args.gate, uint64_t{args.width} * cols, "gate: gate");
  for (uint32_t w = 0; w < args.width; ++w) {
    for (uint32_t c = 0; c < cols; ++c) {
      x.row(w)[c] = static_cast<float>(x.row(w)[c] / (1 + std::exp(-double{gate[size_t{w} * cols + c]})));
    }
    x.sum_of_squares(w) = std::numeric_limits<double>::quiet_NaN();
  }
}

}  // namespace canopy::reference
