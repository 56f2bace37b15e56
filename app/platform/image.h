#pragma once
// Pictures in pixels and PNG files of them, still and animated (the PNG specification, third edition).

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace canopy::app {

/// A picture in 8-bit RGBA, rows from the top, without padding: width * height * 4 bytes.
struct Image {
  uint32_t width = 0, height = 0;
  std::vector<uint8_t> pixels;
};

/// Writes a PNG and makes its folder. The file gets its name only when it is complete. Throws Error (bad_input) naming
/// the path when it cannot be written.
void write_png(const Image& image, const std::filesystem::path& path);

/// The bytes of a PNG file. An opaque image has no alpha channel in it.
std::string encode_png(const Image& image);

}  // namespace canopy::app
