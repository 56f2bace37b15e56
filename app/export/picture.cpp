#include "app/export/picture.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>
#include <stdexcept>

#include "engine/text/unicode.h"

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

namespace {

/// With one digit after the point where it is not 0.
std::string number(double value) {
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed, 1).ptr;
  std::string out(text.data(), end);
  if (out.ends_with(".0")) out.resize(out.size() - 2);
  return out == "-0" ? "0" : out;
}

std::string share(double value) {
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed, 3).ptr;
  std::string out(text.data(), end);
  while (out.ends_with('0')) out.pop_back();
  if (out.ends_with('.')) out.pop_back();
  return out;
}

/// A path in tenths of a pixel, each point by its distance from the one before: half as long as places would be.
class PathData {
 public:
  explicit PathData(const Path& path) {
    for (const PathStep& step : path.steps()) {
      switch (step.kind) {
        case PathStep::Kind::move: command('m', step, 1); break;
        case PathStep::Kind::line: command('l', step, 1); break;
        case PathStep::Kind::cubic: command('c', step, 3); break;
        case PathStep::Kind::close:
          data_ += 'z';
          at_ = begin_;
          last_ = 'z';
          break;
      }
    }
  }
  std::string take() { return std::move(data_); }

 private:
  struct Tenths {
    long x = 0, y = 0;
  };
  static Tenths tenths(Point p) { return {std::lround(p.x * 10), std::lround(p.y * 10)}; }

  void command(char letter, const PathStep& step, int points) {
    // A line after a move, and more of the same, need no letter.
    const bool said = letter != 'm' && (letter == last_ || (letter == 'l' && last_ == 'm'));
    if (!said) data_ += letter;
    fresh_ = !said;
    Tenths to;
    for (int i = 0; i < points; ++i) {
      to = tenths(step.at[i]);
      distance(to.x - at_.x);
      distance(to.y - at_.y);
    }
    at_ = to;
    if (letter == 'm') begin_ = at_;
    last_ = letter;
  }

  void distance(long value) {
    if (!fresh_ && value >= 0) data_ += ' ';
    fresh_ = false;
    if (value < 0) data_ += '-';
    const long size = std::abs(value);
    if (size >= 10 || size == 0) data_ += std::to_string(size / 10);
    if (size % 10 != 0) data_ += "." + std::to_string(size % 10);
  }

  std::string data_;
  Tenths at_, begin_;
  char last_ = 0;
  bool fresh_ = true;
};

std::string rgb(Colour colour) {
  char text[8];
  std::snprintf(text, sizeof text, "#%02x%02x%02x", colour & 0xFFu, colour >> 8 & 0xFFu, colour >> 16 & 0xFFu);
  return text;
}

std::string face_class(Face face) {
  return std::string(1, "SMBmno"[static_cast<size_t>(face)]);
}

constexpr std::string_view kFaces =
    ".S,.M,.B{font-family:Inter,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif}.M{font-weight:500}"
    ".B{font-weight:600}.m,.n,.o{font-family:'JetBrains Mono',ui-monospace,'SF Mono',Menlo,Consolas,"
    "'DejaVu Sans Mono',monospace}.n{font-weight:500}.o{font-weight:600}text{white-space:pre}";

/// A colour of the picture, and the one that stands in its place in light.
struct Pair {
  bool stroke;
  Colour dark, light;
  auto operator<=>(const Pair&) const = default;
};

class Writer {
 public:
  Writer(const Picture& picture, const SvgOptions& options, const Picture* light)
      : picture_(picture), options_(options), light_(light) {
    if (light && light->parts().size() != picture.parts().size()) differs();
  }

  std::string run() {
    for (size_t i = 0; i < picture_.parts().size(); ++i) {
      const PicturePart* other = light_ ? &light_->parts()[i] : &picture_.parts()[i];
      if (other->index() != picture_.parts()[i].index()) differs();
      std::visit([&](const auto& part) { write(part, std::get<std::decay_t<decltype(part)>>(*other)); },
                 picture_.parts()[i]);
    }
    if (in_group_) body_ += "</g>\n";
    return head() + body_ + "</svg>\n";
  }

 private:
  [[noreturn]] static void differs() {
    throw std::logic_error("The two pictures of an SVG file differ in their shapes.");
  }

  std::string class_of(bool stroke, Colour colour, Colour light) {
    const auto [at, added] = classes_.emplace(Pair{stroke, colour, light}, classes_.size());
    return "c" + std::to_string(at->second);
  }

  void write(const Shape& shape, const Shape& light) {
    if (shape.path.steps().size() != light.path.steps().size()) differs();
    std::string classes, more;
    if (shape.fill >> 24) classes = class_of(false, shape.fill, light.fill);
    if (shape.stroke.colour >> 24) {
      classes += (classes.empty() ? "" : " ") + class_of(true, shape.stroke.colour, light.stroke.colour);
      if (shape.stroke.width != 1) more += " stroke-width=\"" + number(double{shape.stroke.width}) + "\"";
      if (shape.stroke.dash > 0)
        more +=
            " stroke-dasharray=\"" + number(double{shape.stroke.dash}) + " " + number(double{shape.stroke.gap}) + "\"";
    }
    if (classes.empty()) return;
    if (!(shape.fill >> 24)) more += " fill=\"none\"";
    body_ += "<path class=\"" + classes + "\"" + more + " d=\"" + PathData(shape.path).take() + "\"/>\n";
  }

  void write(const Letters& letters, const Letters& light) {
    if (letters.text != light.text) differs();
    const std::string classes = face_class(letters.face) + " " + class_of(false, letters.colour, light.colour);
    std::string more;
    if (letters.align != Align::left)
      more += letters.align == Align::middle ? " text-anchor=\"middle\"" : " text-anchor=\"end\"";
    if (letters.fits > 0) more += " textLength=\"" + number(double{letters.fits}) + "\"";
    body_ += "<text class=\"" + classes + "\" x=\"" + number(double{letters.at.x}) + "\" y=\"" +
             number(double{letters.at.y}) + "\" font-size=\"" + number(double{letters.em}) + "\"" + more + ">" +
             xml_text(letters.text) + "</text>\n";
  }

  void write(const Group& group, const Group&) {
    if (in_group_) body_ += "</g>\n";
    in_group_ = !group.name.empty();
    if (in_group_) body_ += "<g class=\"" + group.name + "\">\n";
  }

  std::string head() const {
    const std::string width = number(double{picture_.width()}), height = number(double{picture_.height()});
    std::string out = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + width + " " + height +
                      "\" width=\"" + width + "\" height=\"" + height +
                      "\" role=\"img\" aria-labelledby=\"title desc\">\n";
    out += "<title id=\"title\">" + xml_text(options_.title) + "</title>\n";
    out += "<desc id=\"desc\">" + xml_text(options_.description) + "</desc>\n";
    return out + "<style>" + std::string(kFaces) + colours(false) +
           (light_ ? "@media (prefers-color-scheme:light){" + colours(true) + "}" : "") + animation() + "</style>\n";
  }

  std::string colours(bool light) const {
    std::string out;
    for (const auto& [pair, index] : classes_) {
      if (light && pair.light == pair.dark) continue;
      const Colour colour = light ? pair.light : pair.dark;
      const std::string kind = pair.stroke ? "stroke" : "fill";
      out += ".c" + std::to_string(index) + "{" + kind + ":" + rgb(colour);
      const bool clear = (pair.dark >> 24) != 255 || (pair.light >> 24) != 255;
      if (clear) out += ";" + kind + "-opacity:" + share((colour >> 24) / 255.0);
      out += "}";
    }
    return out;
  }

  /// Each group is seen in its times. Where motion is not wanted, the group that is seen last stands still.
  std::string animation() const {
    if (options_.loop_ms <= 0) return {};
    std::string rules, still;
    double latest = -1;
    const auto at = [&](double ms) { return share(100 * std::clamp(ms / options_.loop_ms, 0.0, 1.0)) + "%"; };
    for (const GroupTime& each : options_.times) {
      const bool at_once = each.from <= 0;
      rules += "@keyframes " + each.name + "{0%{visibility:" + (at_once ? "visible" : "hidden") + "}";
      if (!at_once) rules += at(each.from) + "{visibility:visible}";
      if (each.to < options_.loop_ms) rules += at(each.to) + "{visibility:hidden}";
      rules += "}." + each.name + "{visibility:hidden;animation:" + each.name + " " + number(options_.loop_ms) +
               "ms step-end infinite}";
      if (each.to >= latest) still = each.name, latest = each.to;
    }
    return rules + "@media (prefers-reduced-motion:reduce){g{animation:none!important}." + still +
           "{visibility:visible}}";
  }

  const Picture& picture_;
  const SvgOptions& options_;
  const Picture* light_;
  std::map<Pair, size_t> classes_;
  std::string body_;
  bool in_group_ = false;
};

}  // namespace

std::string xml_text(std::string_view text, LineBreaks line_breaks) {
  // No terminal's escapes, no turned text, no character that XML forbids.
  std::string out;
  for (const char c : printable(text, text.size() * 8 + 16, line_breaks)) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      default: out += c;
    }
  }
  return out;
}

std::string svg_of(const Picture& picture, const SvgOptions& options, const Picture* light) {
  return Writer(picture, options, light).run();
}

}  // namespace canopy::app
