#pragma once
// What the budget panel says of a round: what each width promised, what it would have brought, and why the round had
// the one it had. Pure.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/client/cost_snapshot.h"
#include "engine/trace/round_record.h"

namespace canopy::app {

/// Tokens a second by width: a point of a curve, and a row of the table.
struct WidthSpeed {
  uint32_t width = 0;
  double expected = 0;  // tokens, the bonus included
  double ms = 0;        // of the round
  double tokens_per_second() const { return ms > 0 ? 1000 * expected / ms : 0; }
};

struct BudgetRow {
  WidthSpeed speed;
  bool plain = false;   // the row of autoregressive decoding
  bool chosen = false;  // what the round did
  bool best = false;    // the highest S(N) of all that is shown, autoregressive decoding included
};

struct BudgetView {
  // Predicted, before the target's pass.
  std::vector<WidthSpeed> predicted;  // ascending widths; empty where nothing was forecast
  bool recorded = false;              // by the engine in that round; else worked out from its tree and the cost table
  double ar_tokens_per_second = 0;    // of autoregressive decoding; 0 where it is not known
  // Measured, by what the text accepted of this tree cut at N. The time of other widths than the one that ran is the
  // predicted one, corrected by this round's error.
  std::vector<WidthSpeed> measured;     // widths 1 ... the one that ran
  std::optional<WidthSpeed> chosen;     // what the round's own width promised
  WidthSpeed realised;                  // what it brought; its `expected` is what it emitted
  std::optional<WidthSpeed> hindsight;  // the best of `measured`
  std::optional<double> time_error;     // measured over predicted time, less 1
  uint32_t axis_end = 128;              // widths on the axis

  std::vector<BudgetRow> rows;      // at most five
  std::string title;                // "Why 64"
  std::string reason;               // the engine's sentence
  std::string next_row;             // what one step wider would have cost; may be empty
  bool is_argmax = false;           // the choice is the highest of the S(N) shown, within the limits
  std::string not_argmax;           // if not: why; empty where it is, and where nothing was forecast
  bool loses = false;               // no width with a draft promised more than autoregressive decoding
  std::vector<std::string> limits;  // in force: "depth 15", ...
};

/// costs: of the very pair and device that the round ran on; null where they are not known.
BudgetView budget_view(const RoundRecord& record, const CostSnapshot* costs);

/// "Speculation loses here: use AR", "Speculation pays here"; empty where nothing was forecast.
std::string verdict(const BudgetView& view);

}  // namespace canopy::app
