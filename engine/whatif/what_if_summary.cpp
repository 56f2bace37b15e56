#include "engine/whatif/what_if_summary.h"

#include <algorithm>
#include <cstdio>

namespace canopy {
namespace {

constexpr double pays_from = 1.05, costs_below = 0.97;

std::string guesses(uint32_t narrowest, uint32_t widest) {
  const uint32_t least = narrowest - 1, most = widest - 1;
  if (most == 0) return "no guesses";
  if (least == most) return std::to_string(most) + (most == 1 ? " guess a pass" : " guesses a pass");
  return std::to_string(least) + " to " + std::to_string(most) + " guesses a pass";
}

std::string times(double ratio) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", ratio);
  return text;
}

std::string verdict_of(const WhatIfSummary& summary) {
  if (summary.widths.empty()) return "Nothing could be re-run.";
  const std::string widths = guesses(summary.narrowest, summary.widest);
  switch (summary.payoff) {
    case Payoff::pays:
      return "Guessing pays: " + widths + ", " + times(summary.ratio) + " times as fast as plain decoding.";
    case Payoff::even:
      return "Hardly worth guessing: " + widths + ", " + times(summary.ratio) + " times plain decoding.";
    case Payoff::costs:
      return "Guessing does not pay: " + widths + ", " + times(summary.ratio) + " times the speed of plain decoding.";
    case Payoff::unknown: break;
  }
  return "With " + widths + "; what plain decoding takes is not known.";
}

}  // namespace

WhatIfSummary summarize(const WhatIf& run) {
  WhatIfSummary summary;
  for (const WhatIfRound& round : run.rounds) {
    const uint32_t width = round.record.width;
    ++summary.widths[width];
    summary.plain_rounds += width == 1 ? 1 : 0;
  }
  if (!summary.widths.empty()) {
    summary.narrowest = summary.widths.begin()->first;
    summary.widest = summary.widths.rbegin()->first;
  }
  if (run.ms > 0 && run.ar_ms > 0) {
    summary.ratio = run.ar_ms / run.ms;
    summary.payoff = summary.ratio >= pays_from     ? Payoff::pays
                     : summary.ratio <= costs_below ? Payoff::costs
                                                    : Payoff::even;
  }
  summary.verdict = verdict_of(summary);
  return summary;
}

std::vector<WidthRatio> ratios_by_width(std::span<const RecordedReply> replies, WhatIfWish wish,
                                        std::span<const uint32_t> widths, std::stop_token stop) {
  uint32_t widest = 1;
  for (const RecordedReply& reply : replies) widest = std::max(widest, reply.drafting.rows);
  std::vector<WidthRatio> ratios;
  for (const uint32_t width : widths) {
    if (width > std::min(widest, wish.widest)) break;
    wish.mode = width == 1 ? DecodeMode::ar : DecodeMode::tree;
    wish.budget = std::max(1u, width - 1);
    const WhatIf run = what_if(replies, wish, {{}, stop});
    // A narrower recording cut no wider: its trees end where they ended.
    const WhatIfSummary summary = summarize(run);
    if (summary.widths.empty() || summary.widest < width) break;
    ratios.push_back({width, summary.ratio, run.exact});
  }
  return ratios;
}

}  // namespace canopy
