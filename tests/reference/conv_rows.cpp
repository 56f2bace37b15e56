// x[w, c] += sum over taps j <= w of (base[side, j, c] + kernel[w, side, j, c / group]) * in[w - j, c]

#include "tests/reference/memory.h"
#include "tests/reference/ops.h"

namespace canopy::reference {

template <>
void compute(const ConvRowsArgs& args) {
  check_conv_rows(args);
  const uint32_t cols = args.cols, taps = args.taps, groups = args.groups();
  const auto in = elements<float>(args.in, uint64_t{args.width} * cols, "conv_rows: in");
  const auto base = elements<float>(args.base, uint64_t{2} * taps * cols, "conv_rows: base");
  const auto kernel = elements<float>(args.kernel, uint64_t{args.width} * args.kernel_cols(), "conv_rows: kernel");
  const auto x = elements<float>(args.x, uint64_t{args.width} * cols, "conv_rows: x");
  for (uint32_t w = 0; w < args.width; ++w) {
    for (uint32_t c = 0; c < cols; ++c) {
      double sum = x[size_t{w} * cols + c];
      for (uint32_t j = 0; j < taps && j <= w; ++j) {
        const size_t tap = size_t{args.side} * taps + j;
        const double factor =
            double{base[tap * cols + c]} + kernel[size_t{w} * args.kernel_cols() + tap * groups + c / args.group];
        sum += factor * in[size_t{w - j} * cols + c];
      }
      x[size_t{w} * cols + c] = static_cast<float>(sum);
    }
  }
}

}  // namespace canopy::reference
