#pragma once
// All rounds as bars in time: their places, the panel at the bottom, and the strip of Watch.

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "app/state/round_log.h"
#include "app/ui/panel.h"

struct ImVec2;

namespace canopy::app {

// Places of a log's rounds on the timeline: one bar each while there is room, else columns of several rounds. Pure;
// lengths are pixels of the 100% design.

inline constexpr double kRoundPitch = 15;     // a bar of 10 and a gap of 5
inline constexpr double kNarrowestPitch = 3;  // a bar of 2 and a gap of 1; with less, several rounds share a column
inline constexpr double kWidestPitch = 40;

struct TimelineView {
  double pitch = kRoundPitch;  // pixels per round
  double first = 0;            // number of the round at the left edge; may be a fraction

  double x_of(size_t round) const { return (static_cast<double>(round) - first) * pitch; }
};

/// The part that the user zoomed to; empty: all rounds, as wide as there is room.
struct TimelineZoom {
  std::optional<double> pitch;
  double first = 0;
};

/// The view for a zoom, moved so that it stays within the log and has the shown round in it. The pitch of the zoom is
/// kept.
TimelineView timeline_view(const TimelineZoom& zoom, size_t rounds, size_t shown, double width);

/// The zoom enlarged by `factor`; the round at pixel x stays where it is. Zooming out until everything fits gives an
/// empty zoom.
TimelineZoom zoomed(const TimelineView& view, double factor, double x, size_t rounds, double width);
/// The zoom moved by this many pixels.
TimelineZoom moved(const TimelineView& view, double pixels);

/// The round at a pixel, or the nearest one. The log must have rounds.
size_t round_at(const TimelineView& view, double x, size_t rounds);

/// A bar of one round, or of several that share it.
struct TimelineColumn {
  double x = 0, width = 0;  // of the bar
  size_t first = 0, rounds = 1;
  uint32_t most_emitted = 0, most_accepted = 0;  // of the round that emitted the most
  uint32_t most_drafted = 0;
  size_t from_text = 0;                        // rounds whose guesses are from the text alone
  double mean_emitted = 0, mean_accepted = 0;  // over the rounds: the target's own tokens are the difference

  /// Whether it is marked: most of its rounds asked no drafter.
  bool is_from_text() const { return from_text * 2 > rounds; }
};

/// The bars that are at least partly visible. Which rounds share a column does not change while scrolling.
std::vector<TimelineColumn> timeline_columns(const RoundLog& log, const TimelineView& view, double width);

/// The largest values in the log, for the axis.
struct TimelineScale {
  uint32_t emitted = 16;
  uint32_t drafted = 16;
  void include(const RoundSummary& round);
};

// The panel at the bottom with a strip of all rounds, the shown one marked, and the controls of the replay.

class TimelinePanel final : public Panel {
 public:
  const char* name() const override { return "Timeline"; }
  void draw(const ViewModel& view, CommandSink& sink) override;

  /// What the user zoomed to; stays when another round is shown and when new ones come.
  const TimelineZoom& zoom() const { return zoom_; }

 private:
  void draw_plot(const RoundsState& rounds, CommandSink& sink, ImVec2 pos, ImVec2 size, bool named);
  void take_mouse(const RoundsState& rounds, const TimelineView& at, CommandSink& sink, ImVec2 pos, ImVec2 size);
  void catch_up(const RoundsState& rounds);

  TimelineZoom zoom_;
  TimelineScale scale_;  // largest values of the rounds seen so far
  size_t counted_ = 0;
  std::weak_ptr<const RoundLog> log_;  // the log that scale_ belongs to
};

/// The strip at the bottom of Watch: buttons of the replay, the present pass, and a bar for each pass. It has the
/// height of its window; a low one has a single row without bars.
class WatchStrip final : public Panel {
 public:
  const char* name() const override { return "Watch passes"; }
  void draw(const ViewModel& view, CommandSink& sink) override;

 private:
  void draw_bars(const RoundsState& rounds, CommandSink& sink, ImVec2 pos, ImVec2 size);

  std::weak_ptr<const RoundLog> log_;
  size_t counted_ = 0;
  TimelineScale scale_;
};

}  // namespace canopy::app
