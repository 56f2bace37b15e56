#include "app/shell/dock_shape.h"

#include <algorithm>
#include <cmath>

namespace canopy::app {
namespace {

constexpr float kWideWidth = 1100, kWideHeight = 600;  // below these, the tree would be narrower than the chat
constexpr float kMediumWidth = 760, kMediumHeight = 300;
constexpr float kStripHeight = 480;
constexpr float kLargestShare = 0.45f;

}  // namespace

DockShape dock_shape(float width, float height) {
  if (width >= kWideWidth && height >= kWideHeight) return DockShape::wide;
  return width >= kMediumWidth && height >= kMediumHeight ? DockShape::medium : DockShape::narrow;
}

bool has_timeline_strip(float height) {
  return height >= kStripHeight;
}

float fitted_length(float wish, float room) {
  return std::max(1.0f, std::min(wish, std::floor(room * kLargestShare)));
}

std::string_view to_string(DockShape shape) {
  switch (shape) {
    case DockShape::wide: return "wide";
    case DockShape::medium: return "medium";
    case DockShape::narrow: return "narrow";
  }
  return "";
}

}  // namespace canopy::app
