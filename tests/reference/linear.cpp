// out[w, offset + r] = scale(w) * sum_k weight[r, k] * in[w, k]

#include "tests/reference/matrix_product.h"
#include "tests/reference/memory.h"
#include "tests/reference/ops.h"

namespace canopy::reference {

template <>
void compute(const LinearArgs& args) {
  const HostWeight& weight = host_weight(args.weight, "linear: weight");
  const HostActivations& in = read_activations(args.in, args.width, weight.cols(), "linear: in");
  const auto out = elements<float>(args.out, uint64_t{args.width} * args.stride, "linear: out");
  require(uint64_t{args.offset} + weight.rows() <= args.stride, "linear: offset + rows exceed the stride.");

  for (uint32_t w = 0; w < args.width; ++w) {
    const ProductInput input(in, w, args.norm_eps, weight);
    float* result = out.data() + size_t{w} * args.stride + args.offset;
    for (uint32_t r = 0; r < weight.rows(); ++r) {
      result[r] = static_cast<float>(input.times(r));
    }
  }
}

}  // namespace canopy::reference
