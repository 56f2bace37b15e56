#pragma once
// What the page of sweeps shows of a sweep and of others' beside it. Pure.

#include <cstdint>
#include <string>
#include <vector>

#include "app/state/comparison_state.h"
#include "engine/base/text_table.h"
#include "engine/comparison/sweep_overlay.h"

namespace canopy::app {

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
