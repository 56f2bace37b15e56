#pragma once
// A picture as SVG text. It needs no other file: letters are text in families that every system has something for.

#include <string>
#include <string_view>
#include <vector>

#include "app/picture/picture.h"
#include "engine/base/printable.h"

namespace canopy::app {

/// A time in which a group of an animated picture is seen, in milliseconds from its beginning.
struct GroupTime {
  std::string name;  // of the Group
  double from = 0, to = 0;
};

struct SvgOptions {
  std::string title;        // for those who cannot see it, and shown under the mouse
  std::string description;  // likewise, longer
  double loop_ms = 0;       // of an animated picture; 0: all groups are seen at all times
  std::vector<GroupTime> times;
};

/// The SVG file of a picture. With `light`, which must have the same shapes in other colours, the file has both and
/// shows what the reader's system prefers; throws std::logic_error where they differ in more than colours.
std::string svg_of(const Picture& picture, const SvgOptions& options, const Picture* light = nullptr);

/// Text as the content of an element or attribute of XML: what XML does not allow becomes U+FFFD, and what would end
/// the text, or turn its direction, is escaped.
std::string xml_text(std::string_view text, LineBreaks line_breaks = LineBreaks::escape);

}  // namespace canopy::app
