#pragma once
// Re-runs recorded replies in virtual time: what another policy, tree or device would have made of the same text, and
// what that comes to. The text does not depend on how it was written, and a drafter's draft does not depend on how its
// text was, so nothing is guessed but, where they are predicted, the times.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "engine/whatif/recorded_reply.h"

namespace canopy {

/// What passes cost on a device.
struct WhatIfCosts {
  CostTable table;  // that the choice of widths starts from
  /// What rounds take; null: what the table says.
  std::shared_ptr<const PassCost> times;
};

struct WhatIfWish {
  /// As they were where the reply was recorded: rounds take what they took. Otherwise those of another device.
  std::optional<WhatIfCosts> costs;
  /// None: as recorded.
  std::optional<DecodeMode> mode;
  std::optional<CostPolicy> policy;  // of mode adaptive
  std::optional<uint32_t> budget;    // of mode tree
  uint32_t widest = UINT32_MAX;      // rows of a pass, at most
  uint32_t deepest = UINT32_MAX;     // tokens of a draft, at most
};

/// A round as it would have been. Its record has what the planner of the round wrote, the text that it would have
/// emitted, and its times; the target's own tokens beside the path are not known.
struct WhatIfRound {
  RoundRecord record;
  size_t reply = 0;          // of those that were re-run
  double ar_ms = 0;          // of its tokens by plain decoding there; 0 where no costs are known
  bool chosen = false;       // the controller decided
  bool as_recorded = false;  // the same tree, chain or single row was verified at the same place when it was recorded
};

struct WhatIf {
  std::vector<WhatIfRound> rounds;
  /// Every round began where the one before it ended, and everything that was asked for was recorded. Otherwise the
  /// rounds are passes at the places of recorded ones, and totals are means over these.
  bool exact = true;
  std::string why_not;  // a sentence; empty where it is exact
  uint64_t tokens = 0;  // that rounds emitted
  double ms = 0;        // of all rounds
  double ar_ms = 0;     // of their tokens by plain decoding; 0 where it is not known of every round
  uint64_t chosen = 0;  // rounds whose width the controller chose
  uint64_t as_recorded = 0;
  bool plain_known = true;  // of each round so far, what plain decoding would have taken
  uint64_t left_out = 0;    // recorded rounds of which nothing is known: their drafts were not recorded

  /// Adds a round's figures to the totals.
  void add(WhatIfRound round);

  double tokens_per_second() const { return ms > 0 ? 1000 * static_cast<double>(tokens) / ms : 0; }
  double ar_tokens_per_second() const { return ar_ms > 0 ? 1000 * static_cast<double>(tokens) / ar_ms : 0; }
  double tokens_a_round() const {
    return rounds.empty() ? 0 : static_cast<double>(tokens) / static_cast<double>(rounds.size());
  }
};

struct WhatIfCallbacks {
  std::function<void(uint64_t done, uint64_t total)> progress;  // tokens of the text
  std::stop_token stop;
};

/// Re-runs the replies one after the other: what the first teaches, the next knows. What the first knew when it was
/// recorded is kept, but with the costs of another device only what it knew of the drafter. Throws bad_input for a wish
/// that cannot be granted (no replies, costs that were not recorded, a mode that needs a drafter, a record that is
/// damaged or contradicts itself) and cancelled.
WhatIf what_if(std::span<const RecordedReply> replies, const WhatIfWish& wish, const WhatIfCallbacks& callbacks = {});

// What a re-run comes to: the widths that were chosen and whether speculation pays.

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
