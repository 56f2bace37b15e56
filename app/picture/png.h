#pragma once
// PNG files, still and animated (the PNG specification, third edition).

#include <string>
#include <vector>

#include "app/picture/image.h"

namespace canopy::app {

/// The bytes of a PNG file. An opaque image has no alpha channel in it.
std::string encode_png(const Image& image);

/// Makes an animated PNG a frame at a time, so that one frame is in memory. Each frame holds what differs from the one
/// before; programs that know no animation show the first.
class AnimatedPng {
 public:
  /// Frames of this size, of which there will be `count`, at least one. The animation begins anew after its last.
  AnimatedPng(uint32_t width, uint32_t height, uint32_t count);

  /// Adds an opaque frame that is shown for this long. Throws std::logic_error for another size.
  void add(const Image& frame, uint32_t milliseconds);

  /// The whole file. Throws std::logic_error unless all frames were added.
  std::string finish();

 private:
  std::string file_;
  Image shown_;
  uint32_t count_, added_ = 0, sequence_ = 0;
};

}  // namespace canopy::app
