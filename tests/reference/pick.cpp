// out[i] = logits[row - first_row, token] of pair i, where first_row <= row < first_row + rows

#include "tests/reference/memory.h"
#include "tests/reference/ops.h"

namespace canopy::reference {

template <>
void compute(const PickArgs& args) {
  const auto logits = elements<float>(args.logits, uint64_t{args.rows} * args.vocab, "pick: logits");
  const auto pairs = elements<uint32_t>(args.pairs, uint64_t{args.count} * 2, "pick: pairs");
  const auto out = elements<float>(args.out, args.count, "pick: out");

  for (uint32_t i = 0; i < args.count; ++i) {
    const uint32_t row = pairs[2 * i];
    const uint32_t token = pairs[2 * i + 1];
    require(token < args.vocab, "pick: a token lies outside the vocabulary.");
    if (row < args.first_row || row - args.first_row >= args.rows) continue;
    out[i] = logits[size_t{row - args.first_row} * args.vocab + token];
  }
}

}  // namespace canopy::reference
