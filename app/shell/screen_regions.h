#pragma once
// "What am I looking at": the parts of the window that are on show, numbered, with a sentence on each.

#include <string_view>
#include <vector>

#include <imgui.h>

#include "app/state/ui_command.h"

namespace canopy::app {

/// A part of the window in a frame, by the name that region_words() knows (app/base/terms.h).
struct ScreenRegion {
  std::string_view name;
  ImVec2 pos, size;  // pixels
};

/// The parts that can be told about: with a sentence of their own, some room, and none named twice; from the top down,
/// and from left to right.
std::vector<ScreenRegion> told_regions(const std::vector<ScreenRegion>& drawn);

/// Draws the overview over everything else. A click beside its card closes it.
void draw_regions(const std::vector<ScreenRegion>& drawn, CommandSink& sink);

}  // namespace canopy::app
