#pragma once
// How much room docked panels get. Pure arithmetic in units of the 100% design, so that it is tested without a window.

#include <string_view>

namespace canopy::app {

/// What panels share one place, by the room there is: a window on a projector at 300% is small, however many pixels it
/// has.
enum class DockShape {
  wide,    // chat | tree over budget | statistics, and the timeline below
  medium,  // chat | everything else in tabs
  narrow,  // everything in tabs
};

/// Places of the wide shape; the other shapes put several of them together.
enum class DockPlace { left, centre, below, right, bottom };

inline constexpr float kChatWidth = 364;
inline constexpr float kStatisticsWidth = 360;
inline constexpr float kBudgetHeight = 286;
inline constexpr float kTimelineHeight = 106;

DockShape dock_shape(float width, float height);

/// Whether the timeline has a strip of its own at the bottom; else it is a tab.
bool has_timeline_strip(float height);

/// The length that a side panel gets: what was wished, as long as it leaves its neighbours the larger part.
float fitted_length(float wish, float room);

/// "wide", ...: as it is written in the layout file.
std::string_view to_string(DockShape shape);

}  // namespace canopy::app
