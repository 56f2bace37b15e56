#include "app/charts/elsewhere.h"

#include <algorithm>

namespace canopy::app {

Elsewhere elsewhere_up_to(const WhatIfThere& there, size_t reply, uint32_t context) {
  Elsewhere all;
  if (!there.problem.empty()) return all;
  all.device = there.name;
  all.detail = there.detail;
  all.from = there.from;
  all.at_most = !there.run.exact;
  double ms = 0, ar_ms = 0;
  for (const WhatIfRound& round : there.run.rounds) {
    if (round.reply != reply || round.record.context > context) continue;
    const uint32_t guesses = round.record.width - 1;
    all.least = all.rounds == 0 ? guesses : std::min(all.least, guesses);
    all.most = std::max(all.most, guesses);
    all.guesses = guesses;
    all.tokens += static_cast<double>(round.record.emitted.size());
    ms += round.record.ms.total();
    ar_ms += round.ar_ms;
    ++all.rounds;
  }
  if (all.rounds == 0 || ms <= 0 || ar_ms <= 0) return all;
  const auto rounds = static_cast<double>(all.rounds);
  all.ratio = ar_ms / ms;
  all.plain_tokens = ms / (ar_ms / all.tokens) / rounds;
  all.tokens /= rounds;
  return all;
}

}  // namespace canopy::app
