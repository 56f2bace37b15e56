#pragma once
// The six typefaces of the program: widths and outlines of their characters. What they lack is looked for among the
// system's (system_fonts.h); the widths of pictures never depend on those, so that they are laid out the same
// everywhere.

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "app/platform/system_fonts.h"

namespace canopy::app {

enum class Face : uint8_t { sans, sans_medium, sans_semibold, mono, mono_medium, mono_semibold };

inline bool is_mono(Face face) {
  return face >= Face::mono;
}

/// Width of a line of text in pixels. Text that is not UTF-8 counts as U+FFFD.
float text_width(Face face, float em, std::string_view text);

/// The text if it is no wider than this many pixels; else its longest beginning that is, with an ellipsis.
std::string text_within(Face face, float em, std::string_view text, float width);

/// Whether a typeface of the program has a character.
bool has_own_glyph(Face face, char32_t character);

/// A stretch of a text that one font draws.
struct FontRun {
  uint32_t begin = 0, end = 0;       // bytes of the text
  const SystemFace* font = nullptr;  // null: the program's own, and what no font has
  bool shaped = false;               // its letters are put together before they are drawn
};

/// The fonts of bytes [begin, end) of a text, which are read in one direction; with `system`, the system's too.
std::vector<FontRun> font_runs(Face face, std::string_view text, uint32_t begin, uint32_t end, bool system = true);

/// What a glyph looks like, in units of the em, y downward from the baseline: contours of points, curves already cut
/// into lines fine enough for letters of `pixels` height; or, where it is coloured, the pixels at that height.
struct Glyph {
  std::vector<std::vector<std::pair<float, float>>> contours;
  std::shared_ptr<const GlyphPixels> coloured;
};
struct PlacedGlyph {
  float x = 0, y = 0;  // of the pen, from the beginning of the line
  float shrunk = 1;    // how much smaller it is drawn to fit into its room
  Glyph glyph;
};

/// The glyphs of a line as they are seen, from left to right. They take as much room as text_width() says.
std::vector<PlacedGlyph> glyphs_of(Face face, std::string_view text, float pixels);

/// In place of a character that no font has: a frame around its code, as rectangles in cells, y downward. Cell for cell
/// the digits can be told apart.
struct CodeBox {
  uint32_t width = 0, height = 0;               // cells; kCodeBoxBelow of them are below the baseline
  std::vector<std::array<uint32_t, 4>> filled;  // left, top, right, bottom
};
inline constexpr uint32_t kCodeBoxBelow = 3;
inline constexpr float kCodeBoxCell = 1.0f / 15;  // em
CodeBox code_box(char32_t character);

/// The characters of a text; U+FFFD for what is not UTF-8.
std::vector<char32_t> characters_of(std::string_view text);

}  // namespace canopy::app
