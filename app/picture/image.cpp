#include "app/picture/image.h"

#define STB_IMAGE_WRITE_IMPLEMENTATION
#define STB_IMAGE_WRITE_STATIC
#define STBI_WRITE_NO_STDIO
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
#pragma GCC diagnostic ignored "-Wsign-compare"
#include <stb/stb_image_write.h>
#pragma GCC diagnostic pop

#include <algorithm>
#include <cstdlib>
#include <string>
#include <system_error>

#include "engine/base/atomic_file.h"
#include "engine/base/error.h"

namespace canopy::app {
namespace fs = std::filesystem;

void write_png(const Image& image, const fs::path& path) {
  std::vector<char> file;
  auto append = [](void* to, void* data, int size) {
    auto& out = *static_cast<std::vector<char>*>(to);
    out.insert(out.end(), static_cast<char*>(data), static_cast<char*>(data) + size);
  };
  const int width = static_cast<int>(image.width), height = static_cast<int>(image.height);
  if (!stbi_write_png_to_func(append, &file, width, height, 4, image.pixels.data(), width * 4))
    throw bad_input("The picture of " + std::to_string(width) + " by " + std::to_string(height) +
                    " pixels could not be encoded.");
  std::error_code error;
  if (path.has_parent_path()) fs::create_directories(path.parent_path(), error);
  if (error) {
    throw bad_input("The folder of the picture " + path.string() + " cannot be created: " + error.message() +
                    ". Choose one that you may write to.");
  }
  write_file_atomically(path, {file.data(), file.size()});
}

double differing_share(const Image& a, const Image& b, int tolerance) {
  if (a.width != b.width || a.height != b.height || a.pixels.empty()) return 1.0;
  size_t differing = 0;
  for (size_t i = 0; i < a.pixels.size(); i += 4) {
    int worst = 0;
    for (size_t c = 0; c < 3; ++c) worst = std::max(worst, std::abs(a.pixels[i + c] - b.pixels[i + c]));
    differing += worst > tolerance;
  }
  return static_cast<double>(differing) / (static_cast<double>(a.pixels.size()) / 4.0);
}

}  // namespace canopy::app
