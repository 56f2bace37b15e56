#pragma once
// Text of all scripts in Dear ImGui, which itself puts one letter beside the other from left to right: the fonts of the
// system for what the program's own lack, boxes with codes for what no font has, letters that are joined, and lines
// whose words are read from right to left.

#include <imgui.h>

#include <cstdint>
#include <string_view>
#include <vector>

#include "app/platform/font_face.h"

namespace canopy::app {

/// Gives the font that was added last what it lacks; `em_ratio` is the height that Dear ImGui knows it by, in em.
/// Without `system_fonts` only boxes.
void add_other_scripts(Face face, float em_ratio, bool system_fonts);

/// Whether a font has something better than a box for a character. True as long as the system's fonts are not known.
bool has_glyph(const ImFont* font, char32_t c);

/// True once after the system's fonts have become known where a frame wanted them: what was measured must be measured
/// again. Call between frames.
bool system_fonts_arrived();
/// Whether a frame wanted the system's fonts, which are not known yet.
bool system_fonts_awaited();

/// A font at a size: the height of a line in pixels, as Dear ImGui takes it.
struct SizedFont {
  ImFont* font = nullptr;
  float size = 0;
};

/// Width of a line of text in pixels.
float line_width(SizedFont font, std::string_view text);
/// Draws a line of text in the order in which it is read; `at` is its upper left corner.
void draw_line(ImDrawList* list, ImVec2 at, SizedFont font, ImU32 colour, std::string_view text);

/// Draws bytes [begin, end) of a text, which are read in one direction. Letters next to them are not joined to them.
void draw_run(ImDrawList* list, ImVec2 at, SizedFont font, ImU32 colour, std::string_view text, uint32_t begin,
              uint32_t end, bool rtl);
/// Sets the widths, by byte of the text, of those letters in a run that are put together: at the first byte of each
/// group, 0 at the others.
void measure_shaped(SizedFont font, std::string_view text, uint32_t begin, uint32_t end, bool rtl,
                    std::vector<float>& advances);

}  // namespace canopy::app
