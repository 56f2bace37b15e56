#pragma once
// A picture as a list of shapes and lines of letters, and the same as SVG text.

#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "app/platform/font_face.h"
#include "app/state/theme.h"
#include "engine/base/text.h"

namespace canopy::app {

// A picture as a list of shapes and lines of letters, from the back to the front. It knows no device: svg_of()
// writes it as text, rasterize() draws it in pixels. Lengths are pixels at 100%; y grows downward.

struct Point {
  float x = 0, y = 0;
};

/// One step of an outline. A cubic has its two controls and its end, the others have one point, `close` none.
struct PathStep {
  enum class Kind : uint8_t { move, line, cubic, close };
  Kind kind = Kind::move;
  Point at[3];
};

class Path {
 public:
  Path& move(Point to);
  Path& line(Point to);
  Path& cubic(Point control, Point other_control, Point to);
  Path& close();
  /// Adds all outlines of another path.
  Path& append(const Path& other);
  const std::vector<PathStep>& steps() const { return steps_; }

 private:
  std::vector<PathStep> steps_;
};

/// A closed outline through these points.
Path polygon(const std::vector<Point>& points);
Path circle(Point centre, float radius);
/// A rectangle with corner radius `round`.
Path rectangle(Point a, Point b, float round = 0);

struct Stroke {
  Colour colour = 0;
  float width = 1;
  float dash = 0, gap = 0;  // no dashes where dash is 0
};

/// An outline, filled by the rule of non-zero winding, stroked, or both. A colour without alpha draws nothing.
struct Shape {
  Path path;
  Colour fill = 0;
  Stroke stroke = {};
};

enum class Align : uint8_t { left, middle, right };

/// One line of text. It is foreign input: what cannot be shown safely has been escaped by whoever made it.
struct Letters {
  std::string text;
  Point at;  // on the baseline, at the end or middle that `align` names
  Face face = Face::sans;
  float em = 13;
  Colour colour = 0;
  Align align = Align::left;
  float fits = 0;  // the width that it was laid out for, where another typeface must take the same; 0: no matter
};

/// Everything drawn between two of these belongs to one group, which an animated picture shows and hides together.
struct Group {
  std::string name;
};

using PicturePart = std::variant<Shape, Letters, Group>;

class Picture {
 public:
  Picture(float width, float height) : width_(width), height_(height) {}

  float width() const { return width_; }
  float height() const { return height_; }
  const std::vector<PicturePart>& parts() const { return parts_; }

  void fill(Path path, Colour colour) { add(Shape{std::move(path), colour, {}}); }
  void stroke(Path path, const Stroke& stroke) { add(Shape{std::move(path), 0, stroke}); }
  void add(PicturePart part) { parts_.push_back(std::move(part)); }
  /// Writes a line with the middle of its letters at height y. Returns its width.
  float write(Point left_middle, Face face, float em, Colour colour, std::string_view text, Align align = Align::left);

 private:
  float width_, height_;
  std::vector<PicturePart> parts_;
};

/// From the middle of small letters with their ascenders, where lines are centred, down to the baseline.
float baseline_below_middle(Face face, float em);

// A picture as SVG text. It needs no other file: letters are text in families that every system has something for.

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
