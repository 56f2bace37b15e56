#include "app/compare/compare_figures.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "app/state/words.h"

namespace canopy::app {
namespace {

constexpr const char* kUnknownFigure = "\u2013";
constexpr const char* kNumbers[] = {"No", "One", "Both", "All three", "All four"};

std::string place_of(const ComparisonColumn& column) {
  if (!column.server.empty()) return column.server + (column.model.empty() ? "" : ", " + column.model);
  std::string words = column.model.empty() ? "" : file_part(column.model);
  if (!column.drafter.empty()) words += (words.empty() ? "drafter " : ", drafter ") + file_part(column.drafter);
  if (!column.device.empty()) words += (words.empty() ? "on " : " on ") + column.device;
  return words;
}

/// The same of a column that was measured, with the names that the engine found.
std::string measured_place(const Sweep& sweep, uint32_t column) {
  if (sweep.subjects.size() < 2) return {};
  const std::string name = sweep.name_of(column);
  const std::string way = sweep.contestants[column].way.name();
  return name.starts_with(way + ", ") ? name.substr(way.size() + 2) : name;
}

const MeasuredRun* first_run(const Sweep& sweep, uint32_t column, uint32_t prompt) {
  const auto found = std::ranges::find(sweep.runs, RunKey{column, prompt, 0}, &MeasuredRun::key);
  return found == sweep.runs.end() ? nullptr : &*found;
}

std::string widths_of(const Sweep& sweep, uint32_t column, const SweepCell& cell) {
  uint32_t widest = 0;
  for (const MeasuredRun& run : sweep.runs)
    if (run.key.contestant == column) widest = std::max(widest, run.widest);
  if (widest == 0) return kUnknownFigure;
  if (std::abs(cell.mean_rows - widest) < 0.05) return grouped(widest);
  return fixed(cell.mean_rows, 1);
}

void take_cell(const Sweep& sweep, const SweepCell& cell, ColumnFigures& column) {
  column.measured = cell.replies > 0 && cell.tokens_per_second.count > 0;
  if (!column.measured) return;
  const double speed_now = cell.tokens_per_second.mean;
  column.speed = speed_now < 10 ? fixed(speed_now, 1) : grouped(static_cast<uint64_t>(std::lround(speed_now)));
  if (cell.tokens_per_second.count > 1)
    column.speed_error = "\u00b1" + fixed(cell.tokens_per_second.sd, cell.tokens_per_second.sd < 9.95 ? 1 : 0);
  if (cell.times_baseline.known()) {
    column.ratio = "\u00d7" + fixed(cell.times_baseline.value, 2);
    const double error = cell.times_baseline.error;
    if (cell.contestant != sweep.baseline) {
      if (cell.times_baseline.has_error()) column.ratio_error = "\u00b1" + fixed(error, error < 0.0095 ? 3 : 2);
      column.ratio_doubt = doubt_of(cell.times_baseline);
      if (!column.ratio_doubt.empty()) column.ratio_doubt = column.name + column.ratio_doubt + ".";
    }
  }
  column.tau = cell.tau > 0 ? fixed(cell.tau, 2) : kUnknownFigure;
  column.rounds = cell.rounds > 0 ? grouped(cell.rounds) : kUnknownFigure;
  column.width = widths_of(sweep, cell.contestant, cell);
  if (decoded_plainly(sweep, cell))
    column.about = "decoded plainly";
  else if (cell.rounds > 0 && sweep.contestants[cell.contestant].way.mode != DecodeMode::ar)
    column.about = "mean width " + fixed(cell.mean_rows, 1);
  column.round = cell.round_ms;
  column.round_ms = cell.round_ms.total() > 0 ? fixed(cell.round_ms.total(), 2) : kUnknownFigure;
}

ColumnText text_of(const MeasuredPlan& plan, uint32_t index, const SweepCell* cell, const ColumnFigures& column) {
  const Sweep& sweep = plan.sweep;
  if (index == sweep.baseline) return column.measured ? ColumnText::reference : ColumnText::unknown;
  const bool reference =
      std::ranges::any_of(sweep.runs, [&](const MeasuredRun& run) { return run.key.contestant == sweep.baseline; });
  if (!column.measured || !reference || cell == nullptr) return ColumnText::unknown;
  if (cell->different == 0) return ColumnText::same;
  return sweep.must_agree(index, sweep.baseline) ? ColumnText::wrong : ColumnText::differs;
}

/// What is asked for guesses, behind the name of a way; nothing where it is the usual.
std::string sources_mark(DraftSources sources) {
  if (sources == kUsualSources) return "";
  if (sources == 0) return " (no guesses)";
  if (sources == kFreeSources) return " (no drafter)";
  const std::pair<DraftSources, const char*> names[] = {{kFromDflash, "drafter"},      {kFromDraft, "smaller model"},
                                                        {kFromMtp, "MTP head"},        {kFromEagle, "EAGLE-3 head"},
                                                        {kFromAssistant, "assistant"}, {kFromSuffix, "text"},
                                                        {kFromRecycling, "recycled"},  {kFromEarlier, "earlier"}};
  std::string words;
  for (const auto& [source, name] : names)
    if ((sources & source) != 0) words += (words.empty() ? "" : ", ") + std::string(name);
  return " (" + words + ")";
}

std::string agreement_sentence(Agreement agreement, size_t columns) {
  switch (agreement) {
    case Agreement::unknown: return {};
    case Agreement::same: return std::string(kNumbers[std::min<size_t>(columns, 4)]) + " texts are the same";
    case Agreement::may: return "Texts differ, as they may";
    case Agreement::must_not: return "Texts differ that must not";
  }
  return {};
}

}  // namespace

std::string file_part(const std::string& path) {
  const size_t end = path.find_last_not_of('/');
  if (end == std::string::npos) return path;
  const size_t begin = path.find_last_of('/', end);
  return path.substr(begin == std::string::npos ? 0 : begin + 1,
                     end - (begin == std::string::npos ? 0 : begin + 1) + 1);
}

std::string way_title(const WayToDecode& way) {
  const std::string sources = sources_mark(way.sources);
  switch (way.mode) {
    case DecodeMode::ar: return "Plain";
    case DecodeMode::chain: return "Chain" + sources;
    case DecodeMode::tree: return "Tree " + grouped(way.budget) + sources;
    case DecodeMode::adaptive: return "Adaptive" + sources;
  }
  return {};
}

std::string way_subtitle(const WayToDecode& way) {
  const bool drafter_alone = way.sources == kFromDflash;
  switch (way.mode) {
    case DecodeMode::ar: return "one token per pass";
    case DecodeMode::chain: return drafter_alone ? "DFlash, one path" : "one path";
    case DecodeMode::tree: return drafter_alone ? "DDTree, fixed size" : "fixed size";
    case DecodeMode::adaptive: return "width chosen each pass";
  }
  return {};
}

CompareFigures compare_figures(const ComparisonState& state) {
  CompareFigures figures;
  const MeasuredPlan* plan = state.comparison ? &*state.comparison : nullptr;
  const std::vector<SweepCell> cells =
      plan != nullptr ? summarize(plan->sweep, plan->sweep.baseline) : std::vector<SweepCell>();
  Verdict verdict;
  if (plan != nullptr) verdict = verdict_of(plan->sweep);
  for (uint32_t i = 0; i < state.compare_setup.columns.size(); ++i) {
    const ComparisonColumn& asked = state.compare_setup.columns[i];
    ColumnFigures column;
    // A server that turned out to be a Canopy writes in the way that it was asked for.
    const bool measured = plan != nullptr && i < plan->sweep.contestants.size();
    const bool canopy = measured && !plan->sweep.subjects[plan->sweep.contestants[i].subject].is_server();
    const bool has_way = asked.server.empty() || canopy;
    column.name = has_way ? way_title(asked.way) : "Server";
    column.about = has_way ? way_subtitle(asked.way) : "passes of a Canopy, else speed and text alone";
    column.place = place_of(asked);
    if (measured) {
      if (const std::string place = measured_place(plan->sweep, i); !place.empty()) column.place = place;
      const auto cell = std::ranges::find_if(
          cells, [&](const SweepCell& each) { return each.contestant == i && each.category == kAllCategories; });
      if (cell != cells.end()) take_cell(plan->sweep, *cell, column);
      column.text = text_of(*plan, i, cell == cells.end() ? nullptr : &*cell, column);
      if (const MeasuredRun* run = first_run(plan->sweep, i, state.shown_prompt)) column.differs_at = run->differs_at;
      column.fastest = verdict.fastest == i;
    }
    figures.longest_round = std::max(figures.longest_round, column.round.total());
    figures.columns.push_back(std::move(column));
  }
  figures.verdict = in_plain_words(verdict.sentence);
  if (!figures.verdict.empty()) {
    figures.about = remarks(plan->sweep);
    for (std::string& remark : figures.about) remark = in_plain_words(remark);
    figures.about.insert(figures.about.begin(), sweep_headline(plan->sweep));
  }
  figures.agreement = verdict.agreement;
  // Before every column wrote once, only that something is wrong is worth saying.
  if (!verdict.sentence.empty() || verdict.agreement == Agreement::must_not)
    figures.agreement_words = agreement_sentence(verdict.agreement, figures.columns.size());
  return figures;
}

std::vector<LaneBar> lane_bars(const std::vector<RaceRound>& rounds, double pixels_per_ms, double least) {
  std::vector<LaneBar> bars;
  uint32_t together = 0;
  for (const RaceRound& round : rounds) {
    const bool narrow =
        !bars.empty() && together > 0 && (bars.back().end_ms - bars.back().begin_ms) * pixels_per_ms < least;
    if (!narrow) {
      bars.push_back({round.begin_ms, round.begin_ms, 0, 0});
      together = 0;
    }
    LaneBar& bar = bars.back();
    const double own = round.emitted - std::min(round.emitted, round.accepted);
    bar.emitted = (bar.emitted * together + round.emitted) / (together + 1);
    bar.own = (bar.own * together + own) / (together + 1);
    bar.end_ms = round.end_ms;
    ++together;
  }
  return bars;
}

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
  std::optional<DraftSources> sources;
  for (const SweepCell& cell : cells) {
    const SweepContestant& contestant = sweep.contestants[cell.contestant];
    // Of several subjects the first: the others are columns of the table.
    if (contestant.subject != sweep.contestants.front().subject || cell.tokens_per_second.count == 0) continue;
    if (ratios && !cell.times_baseline.known()) continue;
    const double value = ratios ? cell.times_baseline.value : cell.tokens_per_second.mean;
    const double error = ratios ? cell.times_baseline.error : cell.tokens_per_second.sd;
    if (contestant.way.mode != DecodeMode::tree) {
      curve.levels.push_back({in_plain_words(contestant.way.name()), value});
      continue;
    }
    // Likewise of several sets of sources.
    if (sources.value_or(contestant.way.sources) != contestant.way.sources) continue;
    sources = contestant.way.sources;
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
  // Compared with plain decoding of the only model, both ratios would be the same column.
  const bool beside = sweep.subjects.size() > 1 || sweep.contestants[baseline].way.mode != DecodeMode::ar;
  view.table.columns = {"Way",   "tok/s \u00b1 sd", "\u00d7 plain", "Tokens per pass",
                        "Width", "Pass, ms",        "Text",         "Replies"};
  if (beside)
    view.table.columns.insert(view.table.columns.begin() + 2, "\u00d7 " + in_plain_words(sweep.name_of(baseline)));
  if (energy) view.table.columns.emplace_back("J/token");
  for (const SweepCell& cell : cells) {
    const bool rounds = cell.rounds > 0;
    std::vector<std::string> row = {in_plain_words(sweep.name_of(cell.contestant)),
                                    spread_words(cell.tokens_per_second, speed_digits(cell.tokens_per_second.mean)),
                                    ratio_words(cell.times_plain),
                                    rounds ? fixed(cell.tau, 2) : kNothing,
                                    rounds ? fixed(cell.mean_rows, 1) : kNothing,
                                    rounds ? fixed(cell.round_ms.total(), 2) : kNothing,
                                    text_words(sweep, cell),
                                    grouped(cell.replies)};
    if (beside) row.insert(row.begin() + 2, ratio_words(cell.times_baseline));
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
    view.table.rows.push_back({in_plain_words(row.way.name()), spread_words(speed_here, speed_digits(speed_here.mean)),
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
  view.verdict = in_plain_words(verdict_of(sweep).sentence);
  view.remarks = remarks(sweep);
  for (std::string& remark : view.remarks) remark = in_plain_words(remark);
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
