// x[w, c] += bias[c]

#include "tests/reference/memory.h"
#include "tests/reference/ops.h"

namespace canopy::reference {

template <>
void compute(const AddBiasArgs& args) {
  const auto x = elements<float>(args.x, uint64_t{args.width} * args.cols, "add_bias: x");
  const auto bias = elements<float>(args.bias, args.cols, "add_bias: bias");
  for (uint32_t w = 0; w < args.width; ++w) {
    for (uint32_t c = 0; c < args.cols; ++c) x[size_t{w} * args.cols + c] += bias[c];
  }
}

}  // namespace canopy::reference
