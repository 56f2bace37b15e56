#pragma once
// The font files of assets/fonts, built into the program, so that it looks the same wherever it is copied to.

#include <span>
#include <string_view>

namespace canopy::app {

/// The bytes of a font file by its name in assets/fonts. Throws Error (unavailable) when there is no such font.
std::span<const unsigned char> embedded_font(std::string_view file_name);

}  // namespace canopy::app
