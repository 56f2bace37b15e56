// out[first_out + w] = {id, bits of logits[w, id]} of the largest logit, ties to the lowest id; NaN never wins

#include <bit>
#include <cmath>
#include <limits>

#include "tests/reference/memory.h"
#include "tests/reference/ops.h"

namespace canopy::reference {

template <>
void compute(const ArgmaxArgs& args) {
  const auto logits = elements<float>(args.logits, uint64_t{args.width} * args.vocab, "argmax: logits");
  const auto out = elements<uint32_t>(args.out, (uint64_t{args.first_out} + args.width) * 2, "argmax: out");

  for (uint32_t w = 0; w < args.width; ++w) {
    uint32_t best = 0xFFFFFFFF;
    float largest = std::numeric_limits<float>::quiet_NaN();
    for (uint32_t id = 0; id < args.vocab; ++id) {
      const float logit = logits[size_t{w} * args.vocab + id];
      if (std::isnan(logit) || logit <= largest) continue;  // a comparison with the first NaN is false
      best = id;
      largest = logit;
    }
    const size_t at = 2 * (size_t{args.first_out} + w);
    out[at] = best;
    out[at + 1] = std::bit_cast<uint32_t>(largest);
  }
}

}  // namespace canopy::reference
