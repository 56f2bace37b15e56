#include "app/picture/picture.h"

#include <algorithm>

namespace canopy::app {

Path& Path::move(Point to) {
  steps_.push_back({PathStep::Kind::move, {to, {}, {}}});
  return *this;
}

Path& Path::line(Point to) {
  steps_.push_back({PathStep::Kind::line, {to, {}, {}}});
  return *this;
}

Path& Path::cubic(Point control, Point other_control, Point to) {
  steps_.push_back({PathStep::Kind::cubic, {control, other_control, to}});
  return *this;
}

Path& Path::close() {
  steps_.push_back({PathStep::Kind::close, {}});
  return *this;
}

Path& Path::append(const Path& other) {
  steps_.insert(steps_.end(), other.steps_.begin(), other.steps_.end());
  return *this;
}

Path polygon(const std::vector<Point>& points) {
  Path path;
  for (size_t i = 0; i < points.size(); ++i) i == 0 ? path.move(points[i]) : path.line(points[i]);
  return path.close();
}

namespace {
constexpr float kCircle = 0.5522848f;  // of the radius: the control of a cubic that is a quarter of a circle
}

Path circle(Point c, float r) {
  const float k = r * kCircle;
  Path path;
  path.move({c.x + r, c.y});
  path.cubic({c.x + r, c.y + k}, {c.x + k, c.y + r}, {c.x, c.y + r});
  path.cubic({c.x - k, c.y + r}, {c.x - r, c.y + k}, {c.x - r, c.y});
  path.cubic({c.x - r, c.y - k}, {c.x - k, c.y - r}, {c.x, c.y - r});
  path.cubic({c.x + k, c.y - r}, {c.x + r, c.y - k}, {c.x + r, c.y});
  return path.close();
}

Path rectangle(Point a, Point b, float round) {
  const float r = std::min({round, (b.x - a.x) * 0.5f, (b.y - a.y) * 0.5f});
  if (r <= 0) return polygon({a, {b.x, a.y}, b, {a.x, b.y}});
  const float k = r * (1 - kCircle);
  Path path;
  path.move({a.x + r, a.y}).line({b.x - r, a.y});
  path.cubic({b.x - k, a.y}, {b.x, a.y + k}, {b.x, a.y + r}).line({b.x, b.y - r});
  path.cubic({b.x, b.y - k}, {b.x - k, b.y}, {b.x - r, b.y}).line({a.x + r, b.y});
  path.cubic({a.x + k, b.y}, {a.x, b.y - k}, {a.x, b.y - r}).line({a.x, a.y + r});
  path.cubic({a.x, a.y + k}, {a.x + k, a.y}, {a.x + r, a.y});
  return path.close();
}

float Picture::write(Point left_middle, Face face, float em, Colour colour, std::string_view text, Align align) {
  const float width = text_width(face, em, text);
  if (!text.empty())
    add(Letters{std::string(text),
                {left_middle.x, left_middle.y + baseline_below_middle(face, em)},
                face,
                em,
                colour,
                align,
                width});
  return width;
}

float baseline_below_middle(Face face, float em) {
  // Half of ascent less descent of the two typefaces, as the window centres lines.
  return em * (is_mono(face) ? 0.36f : 0.364f);
}

}  // namespace canopy::app
