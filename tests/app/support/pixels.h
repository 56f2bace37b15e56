#pragma once
// What tests of pictures ask of them, and where they keep them for people to look at.

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>

#include "app/platform/image.h"
#include "app/state/theme.h"

namespace canopy::test {

/// The number of pixels of exactly this colour, whatever their alpha.
inline size_t pixels_of(const app::Image& image, app::Colour colour) {
  size_t count = 0;
  for (size_t i = 0; i < image.pixels.size(); i += 4)
    count += image.pixels[i] == (colour & 0xFF) && image.pixels[i + 1] == (colour >> 8 & 0xFF) &&
             image.pixels[i + 2] == (colour >> 16 & 0xFF);
  return count;
}

/// The share, in [0, 1], of pixels whose colours differ. 1 for different sizes.
inline double differing_share(const app::Image& a, const app::Image& b) {
  if (a.width != b.width || a.height != b.height || a.pixels.empty()) return 1.0;
  size_t differing = 0;
  for (size_t i = 0; i < a.pixels.size(); i += 4) differing += std::memcmp(&a.pixels[i], &b.pixels[i], 3) != 0;
  return static_cast<double>(differing) / (static_cast<double>(a.pixels.size()) / 4.0);
}

/// Writes the picture as NAME.png into the folder that CANOPY_PICTURES names, if it names one.
inline void keep_picture(const app::Image& image, const std::string& name) {
  if (const char* folder = std::getenv("CANOPY_PICTURES")) {
    app::write_png(image, std::filesystem::path(folder) / (name + ".png"));
  }
}

}  // namespace canopy::test
