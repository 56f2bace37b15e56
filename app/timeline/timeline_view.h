#pragma once
// Where the rounds of a log stand on the timeline: one bar each as long as there is room, then columns of several.
// Pure; pixels are those of the 100% design.

#include <cstddef>
#include <optional>
#include <vector>

#include "app/rounds/round_log.h"

namespace canopy::app {

inline constexpr double kRoundPitch = 15;     // a bar of 10 and a gap of 5
inline constexpr double kNarrowestPitch = 3;  // a bar of 2 and a gap of 1; below, bars become columns
inline constexpr double kWidestPitch = 40;

struct TimelineView {
  double pitch = kRoundPitch;  // pixels of a round
  double first = 0;            // round at the left edge

  double x_of(size_t round) const { return (static_cast<double>(round) - first) * pitch; }
};

/// What the user chose by zooming; none: all rounds, as wide as there is room.
struct TimelineZoom {
  std::optional<double> pitch;
  double first = 0;
};

/// The view for a zoom: within the log, and with the shown round in it. The zoom's pitch is never changed.
TimelineView timeline_view(const TimelineZoom& zoom, size_t rounds, size_t shown, double width);

/// Zooms by factor about the pixel x, which keeps its round. Zooming out to where all fits is no zoom.
TimelineZoom zoomed(const TimelineView& view, double factor, double x, size_t rounds, double width);
/// Moves by pixels.
TimelineZoom moved(const TimelineView& view, double pixels);

/// The round at a pixel, the nearest one outside; there must be rounds.
size_t round_at(const TimelineView& view, double x, size_t rounds);

/// What one bar stands for: one round, or several that share it.
struct TimelineColumn {
  double x = 0, width = 0;  // of the bar
  size_t first = 0, rounds = 1;
  uint32_t most_emitted = 0, most_accepted = 0, widest = 0;
  double mean_emitted = 0;
};

/// The bars that are at least partly within the width. Which rounds share a column does not change while scrolling.
std::vector<TimelineColumn> timeline_columns(const RoundLog& log, const TimelineView& view, double width);

/// The largest values of the log: what the axis must hold.
struct TimelineScale {
  uint32_t emitted = 16;
  uint32_t width = 16;
  void include(const RoundSummary& round);
};

}  // namespace canopy::app
