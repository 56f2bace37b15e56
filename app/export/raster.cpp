#include "app/export/raster.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "engine/base/error.h"

namespace canopy::app {
namespace {

using Line = std::vector<Point>;

/// Adds up, for the pixels of a rectangle, how much of each is to the right of the edges that cross it. Sums from left
/// to right are then the share of each pixel that is inside (the method of font rasterizers; levien, "font-rs", 2016).
class Coverage {
 public:
  /// Begins a shape within these pixels; edges outside are cut to them.
  void begin(int x0, int y0, int x1, int y1) {
    x0_ = x0, y0_ = y0;
    width_ = std::max(0, x1 - x0), height_ = std::max(0, y1 - y0);
    sums_.assign(static_cast<size_t>(width_ + 2) * static_cast<size_t>(height_), 0.0f);
  }

  void polygon(const Line& points, bool forwards = true) {
    for (size_t i = 0; i < points.size(); ++i) {
      const Point a = points[i], b = points[(i + 1) % points.size()];
      forwards ? edge(a, b) : edge(b, a);
    }
  }

  /// Calls f(x, y, share) for the pixels that are covered.
  template <class F>
  void each(F&& f) const {
    for (int y = 0; y < height_; ++y) {
      const float* row = sums_.data() + static_cast<size_t>(y) * static_cast<size_t>(width_ + 2);
      float sum = 0;
      for (int x = 0; x < width_; ++x) {
        sum += row[x];
        const float share = std::min(std::abs(sum), 1.0f);
        if (share > 1.0f / 512) f(x0_ + x, y0_ + y, share);
      }
    }
  }

 private:
  void edge(Point a, Point b) {
    if (a.y == b.y) return;
    const float direction = a.y < b.y ? 1 : -1;
    if (a.y > b.y) std::swap(a, b);
    const float top = static_cast<float>(y0_), bottom = static_cast<float>(y0_ + height_);
    const float slope = (b.x - a.x) / (b.y - a.y);
    const float from = std::max(a.y, top), to = std::min(b.y, bottom);
    for (int y = static_cast<int>(std::floor(from)); static_cast<float>(y) < to; ++y) {
      const float y_a = std::max(from, static_cast<float>(y)), y_b = std::min(to, static_cast<float>(y + 1));
      if (y_b <= y_a) continue;
      row(y - y0_, a.x + (y_a - a.y) * slope, a.x + (y_b - a.y) * slope, direction * (y_b - y_a));
    }
  }

  /// A piece of an edge within one row of pixels: `height` of it, at these x.
  void row(int y, float xa, float xb, float height) {
    float* const sums = sums_.data() + static_cast<size_t>(y) * static_cast<size_t>(width_ + 2);
    const float most = static_cast<float>(width_);
    float left = std::clamp(std::min(xa, xb) - static_cast<float>(x0_), 0.0f, most);
    float right = std::clamp(std::max(xa, xb) - static_cast<float>(x0_), 0.0f, most);
    const int first = static_cast<int>(left), last = static_cast<int>(right);
    if (first == last) {
      const float middle = (left + right) * 0.5f - static_cast<float>(first);
      sums[first] += height * (1 - middle);
      sums[first + 1] += height * middle;
      return;
    }
    const float per_x = height / (right - left);
    float x = left;
    for (int pixel = first; pixel <= last; ++pixel) {
      const float end = std::min(right, static_cast<float>(pixel + 1)), part = (end - x) * per_x;
      const float middle = (x + end) * 0.5f - static_cast<float>(pixel);
      sums[pixel] += part * (1 - middle);
      sums[pixel + 1] += part * middle;
      x = end;
    }
  }

  int x0_ = 0, y0_ = 0, width_ = 0, height_ = 0;
  std::vector<float> sums_;  // [height][width + 2]
};

float distance(Point a, Point b) {
  return std::hypot(b.x - a.x, b.y - a.y);
}

/// The lines of a path, curves cut up, in pixels.
struct Lines {
  struct Part {
    Line points;
    bool closed = false;
  };
  std::vector<Part> parts;

  Lines(const Path& path, float scale) {
    for (const PathStep& step : path.steps()) {
      const auto at = [&](int i) { return Point{step.at[i].x * scale, step.at[i].y * scale}; };
      if (step.kind == PathStep::Kind::move || parts.empty()) parts.push_back({});
      Part& part = parts.back();
      switch (step.kind) {
        case PathStep::Kind::move:
        case PathStep::Kind::line: part.points.push_back(at(0)); break;
        case PathStep::Kind::cubic: cubic(part.points, at(0), at(1), at(2)); break;
        case PathStep::Kind::close: part.closed = true; break;
      }
    }
  }

 private:
  static void cubic(Line& line, Point c, Point d, Point to) {
    if (line.empty()) line.push_back(c);
    const Point from = line.back();
    const float length = distance(from, c) + distance(c, d) + distance(d, to);
    const int pieces = std::clamp(static_cast<int>(std::ceil(std::sqrt(length) * 2)), 4, 96);
    for (int i = 1; i <= pieces; ++i) {
      const float t = static_cast<float>(i) / static_cast<float>(pieces), s = 1 - t;
      const float a = s * s * s, b = 3 * s * s * t, e = 3 * s * t * t, f = t * t * t;
      line.push_back({a * from.x + b * c.x + e * d.x + f * to.x, a * from.y + b * c.y + e * d.y + f * to.y});
    }
  }
};

/// The pieces of a line between the gaps of its dashes.
std::vector<Line> dashes_of(const Lines::Part& part, float dash, float gap) {
  Line points = part.points;
  if (part.closed && !points.empty()) points.push_back(points.front());
  if (dash <= 0 || gap <= 0) return {points};
  std::vector<Line> pieces;
  float left = dash;
  bool drawn = true;
  for (size_t i = 0; i < points.size(); ++i) {
    if (i == 0) {
      pieces.push_back({points[0]});
      continue;
    }
    Point a = points[i - 1];
    for (float whole = distance(a, points[i]); whole > 0;) {
      const float step = std::min(left, whole), t = step / whole;
      const Point b = {a.x + (points[i].x - a.x) * t, a.y + (points[i].y - a.y) * t};
      if (drawn) pieces.back().push_back(b);
      a = b;
      whole -= step;
      left -= step;
      if (left > 0) continue;
      drawn = !drawn;
      left = drawn ? dash : gap;
      if (drawn) pieces.push_back({a});
    }
  }
  return pieces;
}

class Canvas {
 public:
  Canvas(Image& image, float scale) : image_(image), scale_(scale) {}

  void draw(const Shape& shape) {
    const Lines lines(shape.path, scale_);
    if (shape.fill >> 24) {
      if (!begin(lines, 0)) return;
      for (const Lines::Part& part : lines.parts) coverage_.polygon(part.points);
      paint(shape.fill);
    }
    if (shape.stroke.colour >> 24) stroke(lines, shape.stroke);
  }

  void draw(const Letters& letters) {
    const float em = letters.em * scale_;
    float x = letters.at.x * scale_;
    if (letters.align != Align::left)
      x -= text_width(letters.face, em, letters.text) * (letters.align == Align::right ? 1 : 0.5f);
    const float y = letters.at.y * scale_;
    for (const PlacedGlyph& each : glyphs_of(letters.face, letters.text, em)) {
      const float from_x = x + each.x * em, from_y = y + each.y * em, size = em * each.shrunk;
      if (each.glyph.coloured) {
        draw(*each.glyph.coloured, {from_x, from_y}, each.shrunk, static_cast<float>(letters.colour >> 24) / 255);
        continue;
      }
      Lines::Part bounds;
      std::vector<Line> contours;
      for (const auto& contour : each.glyph.contours) {
        Line& line = contours.emplace_back();
        for (const auto& [gx, gy] : contour) line.push_back({from_x + gx * size, from_y + gy * size});
        bounds.points.insert(bounds.points.end(), line.begin(), line.end());
      }
      if (!begin(bounds.points, 0)) continue;
      for (const Line& line : contours) coverage_.polygon(line);
      paint(letters.colour);
    }
  }

  void draw(const Group&) {}

 private:
  bool begin(const Lines& lines, float around) {
    Line all;
    for (const Lines::Part& part : lines.parts) all.insert(all.end(), part.points.begin(), part.points.end());
    return begin(all, around);
  }
  /// Begins a shape within the bounds of these points; false where nothing of it is on the canvas.
  bool begin(const Line& points, float around) {
    if (points.empty()) return false;
    float x0 = points[0].x, x1 = x0, y0 = points[0].y, y1 = y0;
    for (const Point p : points) {
      if (!std::isfinite(p.x) || !std::isfinite(p.y)) return false;
      x0 = std::min(x0, p.x), x1 = std::max(x1, p.x), y0 = std::min(y0, p.y), y1 = std::max(y1, p.y);
    }
    const auto low = [](float v) { return static_cast<int>(std::floor(std::max(v, 0.0f))); };
    const auto high = [](float v, uint32_t most) {
      return static_cast<int>(std::ceil(std::clamp(v, 0.0f, static_cast<float>(most))));
    };
    const int ax = low(x0 - around), ay = low(y0 - around);
    const int bx = high(x1 + around, image_.width), by = high(y1 + around, image_.height);
    if (ax >= bx || ay >= by) return false;
    coverage_.begin(ax, ay, bx, by);
    return true;
  }

  void stroke(const Lines& lines, const Stroke& stroke) {
    // Thinner than a pixel it is fainter in place of narrower.
    const float width = stroke.width * scale_, half = std::max(width, 1.0f) * 0.5f;
    if (!begin(lines, half + 1)) return;
    for (const Lines::Part& part : lines.parts)
      for (const Line& piece : dashes_of(part, stroke.dash * scale_, stroke.gap * scale_))
        thicken(piece, half, part.closed && stroke.dash <= 0);
    paint(faded(stroke.colour, std::min(1.0f, width)));
  }

  void thicken(const Line& line, float half, bool closed) {
    for (size_t i = 1; i < line.size(); ++i) {
      const Point a = line[i - 1], b = line[i];
      const float length = distance(a, b);
      if (length < 1e-4f) continue;
      const float nx = -(b.y - a.y) / length * half, ny = (b.x - a.x) / length * half;
      coverage_.polygon({{a.x + nx, a.y + ny}, {a.x - nx, a.y - ny}, {b.x - nx, b.y - ny}, {b.x + nx, b.y + ny}});
      const bool joins = i + 1 < line.size() || closed;
      if (joins && half > 0.6f) wedge(b, a, line[i + 1 < line.size() ? i + 1 : 1], half);
    }
  }

  /// Fills the gap that two segments leave on the outside of the bend between them.
  void wedge(Point at, Point before, Point after, float half) {
    const float l0 = distance(before, at), l1 = distance(at, after);
    if (l0 < 1e-4f || l1 < 1e-4f) return;
    const float ux = (at.x - before.x) / l0, uy = (at.y - before.y) / l0;
    const float vx = (after.x - at.x) / l1, vy = (after.y - at.y) / l1;
    const float turn = ux * vy - uy * vx, side = turn > 0 ? -half : half;
    if (std::abs(turn) < 0.02f) return;
    const Line corner = {at, {at.x - uy * side, at.y + ux * side}, {at.x - vy * side, at.y + vx * side}};
    coverage_.polygon(corner, turn > 0);
  }

  /// Draws the pixels of an emoji, `shrunk` times as large, from a pen position on.
  void draw(const GlyphPixels& glyph, Point pen, float shrunk, float strength) {
    if (glyph.pixels.empty()) return;
    const float left = pen.x + glyph.left * shrunk, top = pen.y - glyph.top * shrunk;
    const float right = left + static_cast<float>(glyph.width) * shrunk;
    const float bottom = top + static_cast<float>(glyph.height) * shrunk;
    if (!begin(Line{{left, top}, {right, top}, {right, bottom}, {left, bottom}}, 0)) return;
    coverage_.polygon({{left, top}, {right, top}, {right, bottom}, {left, bottom}});
    coverage_.each([&](int x, int y, float share) {
      const auto from = [&](int at, float begin, uint32_t count) {
        const float cell = (static_cast<float>(at) + 0.5f - begin) / shrunk;
        return static_cast<size_t>(std::clamp(cell, 0.0f, static_cast<float>(count - 1)));
      };
      const uint8_t* pixel =
          glyph.pixels.data() + (from(y, top, glyph.height) * glyph.width + from(x, left, glyph.width)) * 4;
      const Colour colour = Colour{pixel[0]} | Colour{pixel[1]} << 8 | Colour{pixel[2]} << 16;
      blend(x, y, colour, strength * share * static_cast<float>(pixel[3]) / 255);
    });
  }

  void paint(Colour colour) {
    const float alpha = static_cast<float>(colour >> 24) / 255;
    coverage_.each([&](int x, int y, float share) { blend(x, y, colour, alpha * share); });
  }

  void blend(int x, int y, Colour colour, float over) {
    uint8_t* pixel = image_.pixels.data() + (static_cast<size_t>(y) * image_.width + static_cast<size_t>(x)) * 4;
    const float under = static_cast<float>(pixel[3]) / 255 * (1 - over), whole = over + under;
    if (whole <= 0) return;
    for (int c = 0; c < 3; ++c) {
      const float mine = static_cast<float>(colour >> (8 * c) & 0xFFu);
      pixel[c] = static_cast<uint8_t>(std::lround((mine * over + static_cast<float>(pixel[c]) * under) / whole));
    }
    pixel[3] = static_cast<uint8_t>(std::lround(whole * 255));
  }

  Image& image_;
  float scale_;
  Coverage coverage_;
};

}  // namespace

Image rasterize(const Picture& picture, float scale) {
  const float width = std::round(picture.width() * scale), height = std::round(picture.height() * scale);
  constexpr float most = static_cast<float>(kLargestPicture);
  if (!(width >= 1 && height >= 1 && width <= most && height <= most)) {
    throw bad_input("A picture of " + std::to_string(width) + " by " + std::to_string(height) +
                    " pixels was asked for; each side must have 1 to " + std::to_string(kLargestPicture) + ".");
  }
  Image image{static_cast<uint32_t>(width), static_cast<uint32_t>(height), {}};
  image.pixels.assign(size_t{image.width} * image.height * 4, 0);
  Canvas canvas(image, scale);
  for (const PicturePart& part : picture.parts()) std::visit([&](const auto& each) { canvas.draw(each); }, part);
  return image;
}

}  // namespace canopy::app
