#pragma once
// Reads PNG files with another program's reader, for tests.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/platform/image.h"

namespace canopy::test {

/// The image of a PNG file; 0 by 0 pixels where it cannot be read. channels: those that the file has.
app::Image decode_png(std::string_view file, int* channels = nullptr);

/// The chunks of a PNG file by name, in their order; checks their sums.
std::vector<std::pair<std::string, std::string>> png_chunks(std::string_view file);

}  // namespace canopy::test
