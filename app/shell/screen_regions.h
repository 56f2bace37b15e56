#pragma once
// The parts of the window: each a window of Dear ImGui at a fixed place; and "What am I looking at", which numbers
// those on show and has a sentence on each.

#include <imgui.h>

#include <functional>
#include <string_view>
#include <vector>

#include "app/state/theme.h"
#include "app/state/view_model.h"

namespace canopy::app {

/// Draws a window of Dear ImGui without decoration and padding: the bars, the start page, the parts of Watch. pos,
/// size: pixels. contents draws into the window.
void draw_fixed(const char* name, ImVec2 pos, ImVec2 size, Colour background, const std::function<void()>& contents);

// "What am I looking at": the parts of the window that are on show, numbered, with a sentence on each.

/// A part of the window in a frame, by the name that region_words() knows (app/state/words.h).
struct ScreenRegion {
  std::string_view name;
  ImVec2 pos, size;  // pixels
};

/// The parts that can be told about: with a sentence of their own, some room, and none named twice; from the top down,
/// and from left to right.
std::vector<ScreenRegion> told_regions(const std::vector<ScreenRegion>& drawn);

/// Radius of the numbered discs on the parts, at 100%: within the margin that parts leave free at their right.
inline constexpr float kRegionMark = 7;

/// [told] centres of the numbered discs, in pixels: each in the right upper corner of its part; below that, or at the
/// left, where the card or another disc is in the way.
std::vector<ImVec2> region_marks(const std::vector<ScreenRegion>& told, const ImVec4& card, float scale);

/// Draws the overview over everything else. A click beside its card closes it.
void draw_regions(const std::vector<ScreenRegion>& drawn, CommandSink& sink);

}  // namespace canopy::app
