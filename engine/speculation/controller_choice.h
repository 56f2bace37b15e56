#pragma once
// The choice among all widths of a draft: a global maximum, since what passes cost is not convex (design.md, section
// 3).

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/speculation/decode_mode.h"

namespace canopy {

/// The limits on the width of a round.
struct WidthLimits {
  static constexpr uint32_t none = UINT32_MAX;  // no such limit, or not known

  uint32_t budget = none;        // drafted nodes that the user allows
  uint32_t depth = none;         // of the tree; the drafter's B - 1 holds besides
  uint32_t tokens_left = none;   // of the reply
  uint32_t context_left = none;  // positions of the cache behind the committed ones
  uint32_t rows = none;          // of a pass, by its scratch memory

  uint32_t widest() const;   // rows of the widest tree, root included
  uint32_t deepest() const;  // drafted tokens of the longest path; the round emits one more and commits the root
  bool operator==(const WidthLimits&) const = default;
};

/// The forecast for one width.
struct WidthForecast {
  uint32_t width = 0;   // rows, root included
  double expected = 0;  // tokens emitted
  double ms = 0;        // of the whole round
  double tokens_per_second() const { return ms > 0 ? 1000 * expected / ms : 0; }
};

enum class WidthObjective : uint8_t {
  per_round,  // the most tokens per time in this round: S(W), as the BASTION paper has it
  long_run,   // the most tokens above what the round's time would bring at the usual speed: E(W) - rate * ms(W)
};

/// Expected tokens and costs by width. All spans start at width 1, the root alone.
struct WidthCurves {
  std::span<const double> tree;   // [built] tokens emitted by the first W nodes of the tree
  std::span<const double> chain;  // [deepest + 1] by a chain of W - 1 drafted tokens
  std::span<const double> ms;     // [>= both] of a round of that width
  double longest_ms = 0;          // wider rounds may not take longer; width 1 always may
  double tokens_per_ms = 0;       // the usual speed
  WidthObjective objective = WidthObjective::long_run;
};

/// The chosen tree of a round and the reason. choose_width() fills shape and best alone.
struct WidthChoice {
  DecodeMode shape = DecodeMode::ar;                 // ar: the root alone, the draft is not worth verifying
  WidthForecast best{1, 1, 0};                       // rows to verify; a chain has best.width - 1 drafted tokens
  double draft_ms = 0, verify_ms = 0, other_ms = 0;  // predicted
  double ar_tokens_per_second = 0;                   // of autoregressive decoding, predicted
  std::vector<WidthForecast> candidates = {};        // trees, ascending widths, at most 64
  std::string reason = {};                           // one sentence
};

/// The value of a forecast by the objective; the largest is chosen.
double worth(const WidthCurves& curves, double expected, double ms);

/// The best of all widths. A chain must be worth clearly more than the best tree. Above 64 rows only multiples of 16
/// count, and the whole tree: every width that occurs is recorded for the device, and tiles are no finer there.
WidthChoice choose_width(const WidthCurves& curves);
bool may_occur(uint32_t width, uint32_t built);

/// The trees of the curves for a record or a plot, at most 64 of them, ascending: all narrow ones, fewer wide ones,
/// the chosen width and the widest always.
std::vector<WidthForecast> forecasts(const WidthCurves& curves, uint32_t chosen);

}  // namespace canopy
