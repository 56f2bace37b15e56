#include "tests/app/export/decode_png.h"

#include <gtest/gtest.h>

#define STB_IMAGE_IMPLEMENTATION
#define STB_IMAGE_STATIC
#define STBI_ONLY_PNG
#define STBI_NO_STDIO
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wsign-compare"
#include <stb/stb_image.h>
#pragma GCC diagnostic pop

namespace canopy::test {
namespace {

uint32_t u32(std::string_view bytes, size_t at) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<uint8_t>(bytes[at + i]);
  return value;
}

/// CRC-32 a bit at a time, as the standard defines it.
uint32_t crc32(std::string_view bytes) {
  uint32_t crc = 0xFFFFFFFF;
  for (const char c : bytes) {
    crc ^= static_cast<uint8_t>(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (crc & 1 ? 0xEDB88320u : 0);
  }
  return ~crc;
}

}  // namespace

app::Image decode_png(std::string_view file, int* channels) {
  int width = 0, height = 0, found = 0;
  unsigned char* pixels = stbi_load_from_memory(reinterpret_cast<const unsigned char*>(file.data()),
                                                static_cast<int>(file.size()), &width, &height, &found, 4);
  if (!pixels) return {};
  app::Image image{static_cast<uint32_t>(width), static_cast<uint32_t>(height), {}};
  image.pixels.assign(pixels, pixels + size_t{image.width} * image.height * 4);
  stbi_image_free(pixels);
  if (channels) *channels = found;
  return image;
}

std::vector<std::pair<std::string, std::string>> png_chunks(std::string_view file) {
  std::vector<std::pair<std::string, std::string>> chunks;
  EXPECT_EQ(file.substr(0, 8), "\x89PNG\r\n\x1a\n");
  for (size_t at = 8; at + 12 <= file.size();) {
    const uint32_t size = u32(file, at);
    EXPECT_LE(at + 12 + size, file.size());
    const std::string_view checked = file.substr(at + 4, size + 4);
    EXPECT_EQ(u32(file, at + 8 + size), crc32(checked)) << checked.substr(0, 4);
    chunks.emplace_back(checked.substr(0, 4), checked.substr(4));
    at += 12 + size;
  }
  return chunks;
}

}  // namespace canopy::test
