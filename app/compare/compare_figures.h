#pragma once
// What Compare and Sweep say of measurements, as words, figures, tables and curves. Draws nothing.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/state/comparison.h"
#include "engine/base/figures.h"
#include "engine/bench/sweep_summary.h"
#include "engine/bench/sweep_table.h"

namespace canopy::app {

// What the columns of a comparison say, as words and figures. Pure.

/// Whether a column wrote the baseline's text.
enum class ColumnText {
  unknown,    // not known yet
  reference,  // it is the baseline
  same,
  differs,  // another model, device or server may
  wrong,    // it differs, and must not
};

struct ColumnFigures {
  std::string name, about;  // "Tree 16", "fixed size"; once it is measured "mean width 5.3" or "decoded plainly"
  std::string place;        // with what and where, where that is not the loaded model
  bool measured = false;    // the following are known
  std::string speed, speed_error, ratio, ratio_error;
  std::string
      ratio_doubt;  // why the ratio shows no difference, as a sentence; empty where it does, and of the baseline
  std::string tau, rounds, width, round_ms;  // "–" where they are not known
  ColumnText text = ColumnText::unknown;
  std::optional<uint32_t> differs_at;  // token of the shown prompt's first reply
  RoundTimes round;                    // mean of a round
  bool fastest = false;
};

struct CompareFigures {
  std::vector<ColumnFigures> columns;
  std::string verdict;  // a sentence; empty while there is none
  std::vector<std::string>
      about;  // who was measured, and what a reader must know of it; empty while there is no verdict
  Agreement agreement = Agreement::unknown;
  std::string agreement_words;  // "All four texts are the same"
  double longest_round = 0;     // ms, for the bars
};

/// The names of a way in the window: "Tree 16", "Chain (text)", and what it is called in papers.
std::string way_title(const WayToDecode& way);
std::string way_subtitle(const WayToDecode& way);

/// The last component of a path.
std::string file_part(const std::string& path);

/// By column of the set-up; what was measured where there is a comparison.
CompareFigures compare_figures(const ComparisonState& state);

/// Bars of a race lane: rounds that are narrower than `least` pixels are drawn together.
struct LaneBar {
  double begin_ms = 0, end_ms = 0;
  double emitted = 0, own = 0;  // mean of the rounds
};
std::vector<LaneBar> lane_bars(const std::vector<RaceRound>& rounds, double pixels_per_ms, double least);

// What the page of sweeps shows of a sweep and of others' beside it. Pure.

/// The trees of a sweep along their size, and its other ways as levels.
struct SweepCurve {
  std::string name;                  // of the device; of the shown sweep "this sweep"
  std::vector<double> budget;        // drafted nodes, ascending
  std::vector<double> value, error;  // tokens a second ± sd, or ratio to the baseline ± error
  struct Level {
    std::string name;  // "ar"
    double value = 0;
  };
  std::vector<Level> levels;
};

struct SweepOverlayView {
  std::string name;
  TextTable table;
  std::vector<std::string> notes;  // settings that differ
};

struct SweepView {
  std::string headline;  // who was measured
  std::string verdict;   // a sentence
  std::vector<std::string> remarks;
  TextTable table;                       // of all categories together
  std::vector<uint32_t> row_column;      // [rows] column of the sweep that a row is of
  std::vector<SweepCurve> speed, ratio;  // the shown sweep first, then the overlays
  std::vector<SweepOverlayView> overlays;
};

SweepView sweep_view(const Sweep& sweep, uint32_t baseline, const std::vector<SweepLayer>& layers);

}  // namespace canopy::app
