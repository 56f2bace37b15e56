#pragma once

namespace canopy {

/// Where a stretch of text stands. Segments are what lies between two added tokens.
enum class TextPlace { text_start, segment_start, inside };

}  // namespace canopy
