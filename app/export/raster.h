#pragma once
// Draws a picture in pixels, on the processor: edges are smooth by the share of a pixel that a shape covers.

#include "app/export/picture.h"
#include "app/platform/image.h"

namespace canopy::app {

/// The largest picture, in pixels to a side.
inline constexpr uint32_t kLargestPicture = 8192;

/// The picture in 8-bit RGBA, `scale` pixels for each of its own; transparent where nothing was drawn. Throws bad_input
/// for a size of no pixels or beyond kLargestPicture.
Image rasterize(const Picture& picture, float scale = 1);

}  // namespace canopy::app
