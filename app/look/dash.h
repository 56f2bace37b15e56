#pragma once
// Dashes: predicted curves, rejected nodes, the bonus. Dear ImGui draws none.

#include <span>
#include <vector>

#include <imgui.h>

#include "app/look/theme.h"

namespace canopy::app {

/// Pixels, already scaled.
struct Dash {
  float on = 4;
  float off = 3;
};

/// The pieces of a polyline that are drawn: pairs of points, in order. A dash that turns a corner gives several pieces.
/// `closed` joins the last point to the first. Points that are no numbers break the line.
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
