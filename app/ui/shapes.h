#pragma once
// Shapes that Dear ImGui cannot draw: icons, the logo, signs for states, and dashed lines.

#include <imgui.h>

#include <span>
#include <vector>

#include "app/state/theme.h"

namespace canopy::app {

// Icons, drawn as strokes 1.5 px wide on a grid of 16 px.

enum class Icon {
  none,
  chevron,
  stop,
  record,
  plus,
  minus,
  close,
  copy,
  theme,
  folder,
  check,
  branch,
  redo,
  send,
  drop,
  sliders,
  find,  // a cross-hair
  fit,   // four corners
  search,
  edit,
  clip,  // a file that goes with a message
  trash,
  left,
  right,
  play,
  pause,
  first,
  previous,
  next,
  panels,  // a window in three parts
  more,    // three dots
  pin
};

/// Draws an icon centred on `centre`, `size` pixels wide. Inside a disabled group it is drawn with the group's alpha.
void draw_icon(ImDrawList* list, Icon icon, ImVec2 centre, float size, Colour colour);

/// Draws the logo: three branches, the middle one with a tip in the bonus colour.
void draw_logo(ImDrawList* list, ImVec2 centre, float size);

/// Signs for states, so that colour is never the only difference.
void draw_star(ImDrawList* list, ImVec2 centre, float radius, Colour fill);
void draw_cross(ImDrawList* list, ImVec2 centre, float reach, Colour colour, float width);
void draw_check_disc(ImDrawList* list, ImVec2 centre, float radius, Colour disc, Colour mark);
void draw_triangle_sign(ImDrawList* list, ImVec2 centre, float size, Colour fill, Colour mark);

// Dashed lines, which Dear ImGui cannot draw: for predicted curves, rejected nodes and the bonus.

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
