// u = B x of a row; out = C sum_t taps[c, t] u[t, c] over the row and, going up by parents, the taps - 1 before; beyond
// the pass those of the text's tail, whose last is the newest.

#include <algorithm>
#include <limits>
#include <vector>

#include "tests/reference/memory.h"
#include "tests/reference/ops.h"

namespace canopy::reference {
namespace {

/// B x of a row.
std::vector<float> gated_row(std::span<const float> in, uint64_t row, uint32_t cols) {
  const std::span<const float> all = in.subspan(row * 3 * cols, uint64_t{3} * cols);
  std::vector<float> gated(cols);
  for (uint32_t c = 0; c < cols; ++c) gated[c] = all[c] * all[2 * cols + c];
  return gated;
}

}  // namespace

template <>
void compute(const ShortConvArgs& args) {
  check_short_conv(args);
  const uint32_t cols = args.cols, taps = args.taps;
  const auto in = elements<float>(args.in, uint64_t{args.rows} * 3 * cols, "short_conv: in");
  const auto steps = elements<DeltaStep>(args.steps, args.width, "short_conv: steps");
  const auto kernel = elements<float>(args.kernel, uint64_t{cols} * taps, "short_conv: kernel");
  const auto tail = [&](uint32_t kept) {
    require(kept < DeltaStep::kSpare, "short_conv: a row without a parent takes no kept state.");
    const uint64_t size = args.tail_elements();
    return elements<float>(args.tails, (uint64_t{kept} + 1) * size, "short_conv: tails").subspan(kept * size, size);
  };
  HostActivations* const out =
      args.out != nullptr ? &written_activations(args.out, args.out_rows(), cols, "short_conv: out") : nullptr;
  for (uint32_t i = 0; i < args.width; ++i) {
    const DeltaStep& step = steps[i];
    if (step.row == DeltaStep::kNone) continue;
    require(step.row < args.rows, "short_conv: a step names a row beyond the pass.");
    std::vector<std::vector<float>> window(taps);  // oldest first
    uint32_t at = i, last = i, beyond = 0;
    for (uint32_t t = taps; t-- > 0;) {
      if (at != DeltaStep::kNone) {
        window[t] = gated_row(in, steps[at].row, cols);
        last = at;
        at = steps[at].parent;
        require(at == DeltaStep::kNone || at < last, "short_conv: a step comes before that of its parent.");
      } else {
        const auto before = tail(steps[last].from).subspan(uint64_t{taps - 2 - beyond++} * cols, cols);
        window[t].assign(before.begin(), before.end());
      }
    }
    if (out != nullptr) {
      require(step.row < args.out_rows(), "short_conv: a step names a row beyond its output.");
      for (uint32_t c = 0; c < cols; ++c) {
        double sum = 0;
        for (uint32_t t = 0; t < taps; ++t) sum += double{kernel[uint64_t{c} * taps + t]} * window[t][c];
        out->row(step.row)[c] = static_cast<float>(sum * in[(uint64_t{step.row} * 3 + 1) * cols + c]);
      }
      out->sum_of_squares(step.row) = std::numeric_limits<double>::quiet_NaN();
    }
    if (step.to >= DeltaStep::kSpare) continue;  // keeps nothing
    const auto kept = tail(step.to);
    for (uint32_t t = 1; t < taps; ++t) std::ranges::copy(window[t], kept.begin() + (t - 1) * cols);
  }
}

}  // namespace canopy::reference
