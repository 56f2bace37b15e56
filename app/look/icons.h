#pragma once
// Icons, drawn as strokes 1.5 px wide on a grid of 16 px.

#include <imgui.h>

#include "app/base/theme.h"

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
  panels  // a window in three parts
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

}  // namespace canopy::app
