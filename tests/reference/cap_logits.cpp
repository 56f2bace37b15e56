// logits[w, t] = cap * tanh(logits[w, t] / cap)

#include <cmath>

#include "tests/reference/memory.h"
#include "tests/reference/ops.h"

namespace canopy::reference {

template <>
void compute(const CapLogitsArgs& args) {
  require(args.cap > 0, "cap_logits: the cap is not positive.");
  const auto logits = elements<float>(args.logits, uint64_t{args.width} * args.vocab, "cap_logits: logits");
  for (float& logit : logits) logit = static_cast<float>(args.cap * std::tanh(double{logit} / args.cap));
}

}  // namespace canopy::reference
