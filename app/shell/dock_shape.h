#pragma once
// Rules for the room that docked panels get. Pure arithmetic in units of the 100% design, so that it is tested without
// a window.

#include <string_view>

namespace canopy::app {

/// Which panels share a place, by the room in units of the design: on a projector at 300% a window is small, however
/// many pixels it has.
enum class DockShape {
  wide,    // chat | tree over budget | statistics, and the timeline below
  medium,  // chat | everything else in tabs
  narrow,  // everything in tabs
};

/// Places of the wide shape; in the other shapes several of them are one.
enum class DockPlace { left, centre, below, right, bottom };

inline constexpr float kChatWidth = 364;
inline constexpr float kStatisticsWidth = 360;
inline constexpr float kBudgetHeight = 286;
inline constexpr float kTimelineHeight = 106;

DockShape dock_shape(float width, float height);

/// Whether the timeline is a strip at the bottom; otherwise it is a tab.
bool has_timeline_strip(float height);

/// The length of a side panel: the wished one, limited so that its neighbours keep the larger part of the room.
float fitted_length(float wish, float room);

/// "wide", "medium" or "narrow", as written in the layout file.
std::string_view to_string(DockShape shape);

}  // namespace canopy::app
