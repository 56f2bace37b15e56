#pragma once
// The budget N of a round: what each width promised and would have brought, why the round had its width, and the panel
// that explains it.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/state/plain_decoding.h"
#include "app/ui/panel.h"
#include "engine/session/engine_client.h"
#include "engine/speculation/round_record.h"

namespace canopy::app {

// The contents of the budget panel for one round: what each width promised, what it would have brought, and why the
// round had its width. Pure. Widths are rows of a pass, the root included; what is shown is the budget N, the drafted
// nodes: one less.

/// A width with its expected tokens and milliseconds: a point of a curve, or a row of the table.
struct WidthSpeed {
  uint32_t width = 0;
  double expected = 0;  // tokens of the round, the bonus included
  double ms = 0;        // time of the round
  uint32_t budget() const { return width - (width > 0 ? 1 : 0); }
  double tokens_per_second() const { return ms > 0 ? 1000 * expected / ms : 0; }
};

struct BudgetRow {
  WidthSpeed speed;
  bool plain = false;  // the row of plain decoding
  bool ran = false;    // the width that the round had
  bool best = false;   // the highest S(N) of all widths shown, plain decoding included
};

struct BudgetView {
  // Predicted before the target's pass:
  std::vector<WidthSpeed> predicted;  // ascending widths; empty where nothing was forecast
  bool recorded = false;  // recorded by the engine in that round; else computed from its tree and the cost table
  double ar_tokens_per_second = 0;  // of plain decoding; 0 where it is not known
  double plain_forecast = 0;        // the one that the engine expected, where that one was measured; else 0
  std::string plain_from;           // what that was measured by and when; the panel fills it in, as it ages
  // Measured: what the text accepted of this tree cut at N nodes. The times of widths that did not run are predicted
  // ones, corrected by the error of this round's prediction.
  std::vector<WidthSpeed> measured;     // for widths 1 to that of the round
  std::optional<WidthSpeed> own;        // the forecast of the round's own width
  bool was_chosen = false;              // the engine chose that width; else it was set, or the mode has one alone
  WidthSpeed realised;                  // what the round brought; `expected` is the number of tokens it emitted
  std::optional<WidthSpeed> hindsight;  // best afterwards: of `measured`
  std::optional<double> time_error;     // measured time / predicted time - 1
  uint32_t axis_end = 16;               // largest N on the axis

  std::vector<BudgetRow> rows;          // at most five
  std::string title;                    // "Why 64", "A tree of 64"
  std::string reason;                   // why the round had its width, as a sentence
  std::string next_row;                 // what one step wider would have cost; may be empty
  std::optional<uint32_t> best_budget;  // expected best: N with the highest S(N) shown, within the limits; 0: plain
  bool is_argmax = false;               // the round had the width with the highest S(N) shown, within the limits
  std::string not_argmax;               // if not: the reason; empty otherwise, and where nothing was forecast
  bool loses = false;                   // no width with a draft promised more than plain decoding
  bool slower = false;                  // the round's own width promised, or without a forecast brought, less than that
  std::vector<std::string> limits;      // the limits that held for this round: "depth 15", ...
};

/// costs: those of the models and the device that the round ran on; null where they are not known. plain: the speed of
/// plain decoding to compare with; where it is not known, the engine's forecast for the round is taken.
BudgetView budget_view(const RoundRecord& record, const CostSnapshot* costs, const ArReference& plain = {});

/// For each width, how many drafted tokens the text would have accepted if the tree had been cut at that width. Entry W
/// - 1 is for width W; [width of the round].
std::vector<uint32_t> accepted_by_width(const RoundRecord& record);

/// What was expected: "Guessing was not expected to pay"; empty where nothing was forecast.
std::string verdict(const BudgetView& view);

// The panel that explains the budget N of the shown round: the curve S(N), a sentence, and the candidates.

class BudgetPanel final : public Panel {
 public:
  const char* name() const override { return "Budget"; }
  void draw(const ViewModel& view, CommandSink& sink) override;

 private:
  /// The view of the shown round; null before the first.
  const BudgetView* shown(const ViewModel& view);

  std::shared_ptr<const RoundRecord> round_;  // the round that view_ was made of
  std::shared_ptr<const CostSnapshot> costs_;
  double plain_ = 0;  // and the speed of plain decoding
  BudgetView view_;
};

}  // namespace canopy::app
