#pragma once
// What a re-run comes to: the widths that were chosen and whether speculation pays.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "engine/whatif/what_if.h"

namespace canopy {

enum class Payoff {
  pays,    // at least 5 % faster than plain decoding
  even,    // neither
  costs,   // at least 3 % slower
  unknown  // what plain decoding takes there is not known
};

struct WhatIfSummary {
  double ratio = 0;  // speed over that of plain decoding; 0: not known
  Payoff payoff = Payoff::unknown;
  uint32_t narrowest = 0, widest = 0;   // rows of the passes; 0: no rounds
  uint64_t plain_rounds = 0;            // that verified no guess
  std::map<uint32_t, uint64_t> widths;  // passes of each number of rows
  std::string verdict;                  // a sentence
};

WhatIfSummary summarize(const WhatIf& run);

/// Plain decoding and fixed trees of growing width: where speculation stops paying.
struct WidthRatio {
  uint32_t width = 0;  // rows of the pass
  double ratio = 0;    // speed over plain decoding
  bool exact = true;
};

/// Re-runs the replies with trees of these widths, each no wider than the widest recorded pass could be. Throws what
/// what_if() throws; the wish's own mode and budget do not count.
std::vector<WidthRatio> ratios_by_width(std::span<const RecordedReply> replies, WhatIfWish wish,
                                        std::span<const uint32_t> widths, std::stop_token stop = {});

}  // namespace canopy
