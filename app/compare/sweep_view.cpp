#include "app/compare/sweep_view.h"

#include <algorithm>

#include "app/base/figures.h"
#include "engine/comparison/statistics.h"
#include "engine/comparison/sweep_summary.h"
#include "engine/comparison/sweep_table.h"
#include "engine/comparison/verdict.h"

namespace canopy::app {
namespace {

constexpr const char* kNothing = "\u2013";

std::string spread_words(const Spread& spread, int digits) {
  if (spread.count == 0) return kNothing;
  if (spread.count == 1) return fixed(spread.mean, digits);
  return fixed(spread.mean, digits) + " \u00b1 " + fixed(spread.sd, digits);
}

std::string ratio_words(const Ratio& ratio) {
  return ratio.known() ? ratio_figures(ratio) : kNothing;
}

std::string text_words(const Sweep& sweep, const SweepCell& cell) {
  if (cell.replies == 0) return kNothing;
  if (cell.different == 0) return "same";
  const std::string at = cell.differs_at ? " at " + grouped(*cell.differs_at + 1) : "";
  return (sweep.must_agree(cell.contestant, sweep.baseline) ? "WRONG" : "another") + at;
}

/// Digits after the point that a speed is worth.
int speed_digits(double speed) {
  return speed < 100 ? 2 : 1;
}

/// Those over all prompts.
std::vector<SweepCell> whole_cells(const Sweep& sweep, uint32_t baseline) {
  std::vector<SweepCell> cells = summarize(sweep, baseline);
  std::erase_if(cells, [](const SweepCell& cell) { return cell.category != kAllCategories; });
  return cells;
}

SweepCurve curve_of(const Sweep& sweep, const std::vector<SweepCell>& cells, const std::string& name, bool ratios) {
  SweepCurve curve;
  curve.name = name;
  for (const SweepCell& cell : cells) {
    const SweepContestant& contestant = sweep.contestants[cell.contestant];
    // Of several subjects the first: the others are columns of the table.
    if (contestant.subject != sweep.contestants.front().subject || cell.tokens_per_second.count == 0) continue;
    if (ratios && !cell.times_baseline.known()) continue;
    const double value = ratios ? cell.times_baseline.value : cell.tokens_per_second.mean;
    const double error = ratios ? cell.times_baseline.error : cell.tokens_per_second.sd;
    if (contestant.way.mode != DecodeMode::tree) {
      curve.levels.push_back({contestant.way.name(), value});
      continue;
    }
    const auto place = std::ranges::lower_bound(curve.budget, double{contestant.way.budget * 1.0});
    const auto at = place - curve.budget.begin();
    curve.budget.insert(place, contestant.way.budget);
    curve.value.insert(curve.value.begin() + at, value);
    curve.error.insert(curve.error.begin() + at, error);
  }
  return curve;
}

/// The column of `other` that decodes as the baseline does; its own where none does.
uint32_t same_baseline(const Sweep& other, const WayToDecode& way) {
  const auto found = std::ranges::find(other.contestants, way, &SweepContestant::way);
  return found == other.contestants.end() ? other.baseline : static_cast<uint32_t>(found - other.contestants.begin());
}

void add_table(const Sweep& sweep, uint32_t baseline, const std::vector<SweepCell>& cells, SweepView& view) {
  const bool energy = std::ranges::any_of(cells, [](const SweepCell& c) { return c.joules_per_token.count > 0; });
  view.table.columns = {"Way",
                        "tok/s \u00b1 sd",
                        "\u00d7 " + sweep.contestants[baseline].way.name(),
                        "\u00d7 plain",
                        "Tokens per pass",
                        "Width",
                        "Round, ms",
                        "Text",
                        "Replies"};
  if (energy) view.table.columns.emplace_back("J/token");
  for (const SweepCell& cell : cells) {
    const bool rounds = cell.rounds > 0;
    std::vector<std::string> row = {sweep.name_of(cell.contestant),
                                    spread_words(cell.tokens_per_second, speed_digits(cell.tokens_per_second.mean)),
                                    ratio_words(cell.times_baseline),
                                    ratio_words(cell.times_plain),
                                    rounds ? fixed(cell.tau, 2) : kNothing,
                                    rounds ? fixed(cell.mean_rows, 1) : kNothing,
                                    rounds ? fixed(cell.round_ms.total(), 2) : kNothing,
                                    text_words(sweep, cell),
                                    grouped(cell.replies)};
    if (energy) row.push_back(spread_words(cell.joules_per_token, 3));
    view.table.rows.push_back(std::move(row));
    view.row_column.push_back(cell.contestant);
  }
}

SweepOverlayView overlay_of(const Sweep& sweep, const Sweep& other) {
  SweepOverlayView view;
  view.name = overlay_name(other, sweep);
  const OverlayResult both = overlay(sweep, other);
  view.notes = both.notes;
  view.table.columns = {
      "Way",           "here, tok/s", "there, tok/s", "here \u00d7 there", "\u00d7 plain here", "\u00d7 plain there",
      "Texts the same"};
  for (const OverlayRow& row : both.rows) {
    const auto speed_there = row.theirs.tokens_per_second, speed_here = row.ours.tokens_per_second;
    view.table.rows.push_back({row.way.name(), spread_words(speed_here, speed_digits(speed_here.mean)),
                               spread_words(speed_there, speed_digits(speed_there.mean)), ratio_words(row.times_theirs),
                               ratio_words(row.ours.times_plain), ratio_words(row.theirs.times_plain),
                               row.texts > 0 ? grouped(row.same_texts) + " of " + grouped(row.texts) : "\u2013"});
  }
  return view;
}

}  // namespace

SweepView sweep_view(const Sweep& sweep, uint32_t baseline, const std::vector<SweepLayer>& layers) {
  SweepView view;
  if (baseline >= sweep.contestants.size()) return view;
  const std::vector<SweepCell> cells = whole_cells(sweep, baseline);
  view.headline = sweep_headline(sweep);
  view.verdict = verdict_of(sweep).sentence;
  view.remarks = remarks(sweep);
  add_table(sweep, baseline, cells, view);
  view.speed.push_back(curve_of(sweep, cells, "this sweep", false));
  view.ratio.push_back(curve_of(sweep, cells, "this sweep", true));
  for (const SweepLayer& layer : layers) {
    const Sweep& other = *layer.sweep;
    const std::vector<SweepCell> theirs = whole_cells(other, same_baseline(other, sweep.contestants[baseline].way));
    const std::string name = overlay_name(other, sweep);
    view.speed.push_back(curve_of(other, theirs, name, false));
    view.ratio.push_back(curve_of(other, theirs, name, true));
    view.overlays.push_back(overlay_of(sweep, other));
  }
  return view;
}

}  // namespace canopy::app
