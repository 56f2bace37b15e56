#include "app/picture/image.h"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <system_error>

#include "app/picture/png.h"
#include "engine/base/atomic_file.h"
#include "engine/base/error.h"

namespace canopy::app {
namespace fs = std::filesystem;

void write_png(const Image& image, const fs::path& path) {
  std::error_code error;
  if (path.has_parent_path()) fs::create_directories(path.parent_path(), error);
  if (error) {
    throw bad_input("The folder of the picture " + path.string() + " cannot be created: " + error.message() +
                    ". Choose one that you may write to.");
  }
  write_file_atomically(path, encode_png(image));
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
