#include "tests/app/support/picture.h"

#define STB_IMAGE_IMPLEMENTATION
#define STB_IMAGE_STATIC
#define STBI_ONLY_PNG
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
#pragma GCC diagnostic ignored "-Wsign-compare"
#include <stb/stb_image.h>
#pragma GCC diagnostic pop

#include <cstring>
#include <stdexcept>
#include <unordered_set>

namespace canopy::test {

app::Image read_png(const std::filesystem::path& path) {
  int width = 0, height = 0, channels = 0;
  stbi_uc* pixels = stbi_load(path.c_str(), &width, &height, &channels, 4);
  if (!pixels) throw std::runtime_error(path.string() + " is not a PNG: " + stbi_failure_reason());
  app::Image image{static_cast<uint32_t>(width), static_cast<uint32_t>(height), {}};
  image.pixels.assign(pixels, pixels + size_t{4} * image.width * image.height);
  stbi_image_free(pixels);
  return image;
}

size_t colour_count(const app::Image& image) {
  std::unordered_set<uint32_t> seen;
  for (size_t i = 0; i < image.pixels.size(); i += 4) {
    uint32_t colour;
    std::memcpy(&colour, &image.pixels[i], 4);
    seen.insert(colour);
  }
  return seen.size();
}

}  // namespace canopy::test
