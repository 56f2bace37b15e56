#pragma once
// PNG files (the PNG specification, third edition).

#include <string>

#include "app/picture/image.h"

namespace canopy::app {

/// The bytes of a PNG file. An opaque image has no alpha channel in it.
std::string encode_png(const Image& image);

}  // namespace canopy::app
