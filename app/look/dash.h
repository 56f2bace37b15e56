#pragma once
// Dashed lines, which Dear ImGui cannot draw: for predicted curves, rejected nodes and the bonus.

#include <span>
#include <vector>

#include <imgui.h>

#include "app/base/theme.h"

namespace canopy::app {

/// Lengths of a dash and of the gap after it, in pixels of the screen (already scaled).
struct Dash {
  float on = 4;
  float off = 3;
};

/// Cuts a polyline into the pieces to draw: pairs of points, in order. A dash around a corner gives several pieces.
/// `closed` joins the last point to the first. A point that is NaN or infinite interrupts the line.
void dash_pieces(std::span<const ImVec2> points, Dash dash, bool closed, std::vector<ImVec2>& out);

/// Draws a polyline dashed.
void add_dashed(ImDrawList* list, std::span<const ImVec2> points, Dash dash, Colour colour, float width,
                bool closed = false);

/// Draws a cubic curve dashed.
void add_dashed_bezier(ImDrawList* list, ImVec2 p1, ImVec2 p2, ImVec2 p3, ImVec2 p4, Dash dash, Colour colour,
                       float width);

/// Draws the outline of a rectangle with round corners dashed.
void add_dashed_rect(ImDrawList* list, ImVec2 min, ImVec2 max, float rounding, Dash dash, Colour colour, float width);

}  // namespace canopy::app
