#pragma once

#include <filesystem>

#include "app/platform/image.h"

namespace canopy::test {

/// Decodes a PNG. Throws std::runtime_error when it is none.
app::Image read_png(const std::filesystem::path& path);

/// The number of different colours: more than a few show that something was drawn.
size_t colour_count(const app::Image& image);

}  // namespace canopy::test
