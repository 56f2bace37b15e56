#pragma once
// The six typefaces of the program: widths and outlines of their characters. What they lack is looked for among the
// system's; widths never depend on those, so that a picture is laid out the same everywhere.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace canopy::app {

enum class Face : uint8_t { sans, sans_medium, sans_semibold, mono, mono_medium, mono_semibold };

inline bool is_mono(Face face) {
  return face >= Face::mono;
}

/// Width of a line of text in pixels. Text that is not UTF-8 counts as U+FFFD.
float text_width(Face face, float em, std::string_view text);

/// The text if it is no wider than this many pixels; else its longest beginning that is, with an ellipsis.
std::string text_within(Face face, float em, std::string_view text, float width);

/// The outline of a character in units of the em, y downward from the baseline: contours of points, curves already cut
/// into lines fine enough for letters of `pixels` height.
struct Glyph {
  float advance = 0;  // to the next character
  std::vector<std::vector<std::pair<float, float>>> contours;
};
Glyph glyph_of(Face face, char32_t character, float pixels);

/// A font file of the system for scripts that the program's own fonts lack, and the face in it.
struct SystemFont {
  const char* path;
  unsigned face;
};
std::span<const SystemFont> other_scripts();

/// The characters of a text; U+FFFD for what is not UTF-8.
std::vector<char32_t> characters_of(std::string_view text);

}  // namespace canopy::app
