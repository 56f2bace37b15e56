#pragma once
// Icons are drawn, not set from a font: each is a few strokes on a 16 px grid, 1.5 px wide.

#include <imgui.h>

#include "app/look/theme.h"

namespace canopy::app {

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
  pin,   // a straight path
  find,  // a sight
  fit,   // four corners
  search,
  edit,
  trash,
  left,
  right,
  play,
  pause,
  first,
  previous,
  next,
  panels  // a window in three parts
};

/// Draws an icon with its middle at centre, size pixels wide. The alpha of a disabled group applies.
void draw_icon(ImDrawList* list, Icon icon, ImVec2 centre, float size, Colour colour);

/// Three branches of a crown, the middle tip in the bonus colour.
void draw_logo(ImDrawList* list, ImVec2 centre, float size);

/// State badges: never colour alone.
void draw_star(ImDrawList* list, ImVec2 centre, float radius, Colour fill);
void draw_cross(ImDrawList* list, ImVec2 centre, float reach, Colour colour, float width);
void draw_check_disc(ImDrawList* list, ImVec2 centre, float radius, Colour disc, Colour mark);
void draw_triangle_sign(ImDrawList* list, ImVec2 centre, float size, Colour fill, Colour mark);

}  // namespace canopy::app
