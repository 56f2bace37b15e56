#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace canopy::app {

/// 8-bit RGBA, rows from the top, no padding: pixels holds width * height * 4 bytes.
struct Image {
  uint32_t width = 0, height = 0;
  std::vector<uint8_t> pixels;
};

/// Writes a PNG, making its folder; the file appears under its name only when complete.
/// Throws Error (bad_input) naming the path when it cannot be written.
void write_png(const Image& image, const std::filesystem::path& path);

/// The share of pixels, in [0, 1], that differ in any channel by more than tolerance. 1 for different sizes.
double differing_share(const Image& a, const Image& b, int tolerance = 0);

}  // namespace canopy::app
