// out[w, c] = gelu(g) * inputs[w, offset + c], g = scale * gate[w, c], gelu(g) = g / 2 (1 + tanh(sqrt(2 / pi) (g +
// 0.044715 g^3)))

#include <cmath>
#include <limits>
#include <numbers>

#include "tests/reference/memory.h"
#include "tests/reference/ops.h"

namespace canopy::reference {

template <>
void compute(const GateInputsArgs& args) {
  require(args.out != nullptr, "gate_inputs: out is missing.");
  const uint32_t cols = args.out->cols();
  require(uint64_t{args.offset} + cols <= args.stride, "gate_inputs: offset + cols exceed the stride.");
  const auto gate = elements<float>(args.gate, uint64_t{args.width} * cols, "gate_inputs: gate");
  const auto inputs = elements<float>(args.inputs, uint64_t{args.width} * args.stride, "gate_inputs: inputs");
  HostActivations& out = written_activations(args.out, args.width, cols, "gate_inputs: out");
  for (uint32_t w = 0; w < args.width; ++w) {
    for (uint32_t c = 0; c < cols; ++c) {
      const double g = double{args.scale} * gate[size_t{w} * cols + c];
      const double opened = 0.5 * g * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (g + 0.044715 * g * g * g)));
      out.row(w)[c] = static_cast<float>(opened * inputs[size_t{w} * args.stride + args.offset + c]);
    }
    out.sum_of_squares(w) = std::numeric_limits<double>::quiet_NaN();
  }
}

}  // namespace canopy::reference
