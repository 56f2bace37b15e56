#include "app/platform/image.h"

#include <zlib.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <string_view>
#include <system_error>

#include "engine/base/error.h"
#include "engine/base/files.h"

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

namespace {

constexpr std::string_view kSignature = "\x89PNG\r\n\x1a\n";

void append_u32(std::string& out, uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(value >> shift & 0xFFu);
}

void append_chunk(std::string& out, std::string_view kind, std::string_view data) {
  append_u32(out, static_cast<uint32_t>(data.size()));
  const size_t checked = out.size();
  out += kind;
  out += data;
  append_u32(out, static_cast<uint32_t>(::crc32(0, reinterpret_cast<const Bytef*>(out.data() + checked),
                                                static_cast<uInt>(out.size() - checked))));
}

std::string header_of(uint32_t width, uint32_t height, bool alpha) {
  std::string data;
  append_u32(data, width);
  append_u32(data, height);
  data += {8, static_cast<char>(alpha ? 6 : 2), 0, 0, 0};  // bits of a channel, channels, and no choice of the rest
  return data;
}

uint8_t paeth(int left, int above, int corner) {
  const int guess = left + above - corner;
  const int to_left = std::abs(guess - left), to_above = std::abs(guess - above), to_corner = std::abs(guess - corner);
  return static_cast<uint8_t>(to_left <= to_above && to_left <= to_corner ? left
                              : to_above <= to_corner                     ? above
                                                                          : corner);
}

/// A row as differences by one of the filters of PNG, behind the filter's number.
void filter_row(int filter, const uint8_t* row, const uint8_t* above, size_t bytes, size_t pixel, std::string& out) {
  out.clear();
  out += static_cast<char>(filter);
  for (size_t i = 0; i < bytes; ++i) {
    const int left = i >= pixel ? row[i - pixel] : 0, up = above ? above[i] : 0;
    const int corner = above && i >= pixel ? above[i - pixel] : 0;
    const int guesses[] = {0, left, up, (left + up) / 2, paeth(left, up, corner)};
    out += static_cast<char>(row[i] - guesses[filter]);
  }
}

size_t weight_of(std::string_view row) {
  size_t sum = 0;
  for (const char c : row.substr(1))
    sum += static_cast<size_t>(std::abs(static_cast<int>(static_cast<signed char>(c))));
  return sum;
}

std::string deflated(const std::string& rows) {
  uLongf size = ::compressBound(rows.size());
  std::string packed(size, '\0');
  if (::compress2(reinterpret_cast<Bytef*>(packed.data()), &size, reinterpret_cast<const Bytef*>(rows.data()),
                  rows.size(), Z_BEST_COMPRESSION) != Z_OK)
    throw Error(ErrorKind::out_of_memory, "There is no memory left to compress a picture.");
  packed.resize(size);
  return packed;
}

/// The compressed rows of a rectangle of pixels with 3 or 4 channels: each by the filter that leaves least, or all as
/// they are, which is shorter where little is drawn.
std::string compressed(const std::vector<uint8_t>& pixels, uint32_t width, uint32_t height, uint32_t channels) {
  const size_t bytes = size_t{width} * channels;
  std::string rows, plain, tried, best;
  for (uint32_t y = 0; y < height; ++y) {
    const uint8_t* row = pixels.data() + size_t{y} * bytes;
    const uint8_t* above = y > 0 ? row - bytes : nullptr;
    size_t least = std::numeric_limits<size_t>::max();
    for (int filter = 0; filter < 5; ++filter) {
      filter_row(filter, row, above, bytes, channels, tried);
      if (filter == 0) plain += tried;
      const size_t weight = weight_of(tried);
      if (weight >= least) continue;
      least = weight;
      best.swap(tried);
    }
    rows += best;
  }
  std::string filtered = deflated(rows), as_it_is = deflated(plain);
  return filtered.size() < as_it_is.size() ? filtered : as_it_is;
}

std::vector<uint8_t> without_alpha(const Image& image) {
  std::vector<uint8_t> pixels;
  pixels.reserve(image.pixels.size() / 4 * 3);
  for (size_t i = 0; i < image.pixels.size(); i += 4)
    pixels.insert(pixels.end(), image.pixels.begin() + static_cast<std::ptrdiff_t>(i),
                  image.pixels.begin() + static_cast<std::ptrdiff_t>(i) + 3);
  return pixels;
}

bool is_opaque(const Image& image) {
  for (size_t i = 3; i < image.pixels.size(); i += 4)
    if (image.pixels[i] != 255) return false;
  return true;
}

}  // namespace

std::string encode_png(const Image& image) {
  const bool alpha = !is_opaque(image);
  std::string file(kSignature);
  append_chunk(file, "IHDR", header_of(image.width, image.height, alpha));
  append_chunk(file, "IDAT",
               compressed(alpha ? image.pixels : without_alpha(image), image.width, image.height, alpha ? 4 : 3));
  append_chunk(file, "IEND", {});
  return file;
}

}  // namespace canopy::app
