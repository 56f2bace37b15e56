#include "app/ui/shapes.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <numbers>

#include "app/ui/look.h"

namespace canopy::app {
namespace {

constexpr float kQuarterTurn = std::numbers::pi_v<float> * 0.5f;

/// Draws strokes in the 16 px grid of one icon.
class Pen {
 public:
  Pen(ImDrawList* list, ImVec2 centre, float size, Colour colour)
      : list_(list), unit_(size / 16.0f), colour_(ImGui::GetColorU32(colour)) {
    origin_ = {centre.x - size * 0.5f, centre.y - size * 0.5f};
  }
  void line(std::initializer_list<ImVec2> points, bool closed = false, float width = 1.5f) const {
    list_->PathClear();
    for (ImVec2 p : points) list_->PathLineTo(at(p));
    list_->PathStroke(colour_, width * unit_, closed ? ImDrawFlags_Closed : ImDrawFlags_None);
  }
  void curve(ImVec2 a, ImVec2 b, ImVec2 c, ImVec2 d, float width = 1.5f) const {
    list_->AddBezierCubic(at(a), at(b), at(c), at(d), colour_, width * unit_);
  }
  void arc(ImVec2 c, float radius, float from, float to) const {
    list_->PathClear();
    list_->PathArcTo(at(c), radius * unit_, from, to);
    list_->PathStroke(colour_, 1.5f * unit_, ImDrawFlags_None);
  }
  void disc(ImVec2 c, float radius) const { list_->AddCircleFilled(at(c), radius * unit_, colour_); }
  void ring(ImVec2 c, float radius) const { list_->AddCircle(at(c), radius * unit_, colour_, 0, 1.5f * unit_); }
  void triangle(ImVec2 a, ImVec2 b, ImVec2 c) const { list_->AddTriangleFilled(at(a), at(b), at(c), colour_); }
  void half_disc(ImVec2 c, float radius) const {
    list_->PathClear();
    list_->PathArcTo(at(c), radius * unit_, -kQuarterTurn, kQuarterTurn);
    list_->PathFillConvex(colour_);
  }
  void box(ImVec2 a, ImVec2 b, float radius) const { list_->AddRectFilled(at(a), at(b), colour_, radius * unit_); }
  void frame(ImVec2 a, ImVec2 b, float radius) const {
    list_->AddRect(at(a), at(b), colour_, radius * unit_, 1.5f * unit_);
  }

 private:
  ImVec2 at(ImVec2 p) const { return {origin_.x + p.x * unit_, origin_.y + p.y * unit_}; }

  ImDrawList* list_;
  ImVec2 origin_;
  float unit_;
  ImU32 colour_;
};

}  // namespace

void draw_icon(ImDrawList* list, Icon icon, ImVec2 centre, float size, Colour colour) {
  const Pen pen(list, centre, size, colour);
  switch (icon) {
    case Icon::none: break;
    case Icon::chevron: pen.line({{4.5f, 6.5f}, {8, 10}, {11.5f, 6.5f}}); break;
    case Icon::stop: pen.box({4, 4}, {12, 12}, 1.5f); break;
    case Icon::record: pen.disc({8, 8}, 4.5f); break;
    case Icon::plus:
      pen.line({{8, 3}, {8, 13}});
      pen.line({{3, 8}, {13, 8}});
      break;
    case Icon::minus: pen.line({{3, 8}, {13, 8}}); break;
    case Icon::close:
      pen.line({{4, 4}, {12, 12}});
      pen.line({{12, 4}, {4, 12}});
      break;
    case Icon::copy:
      pen.frame({5.5f, 5.5f}, {13.5f, 13.5f}, 1.5f);
      pen.line({{10.5f, 3}, {4, 3}, {3, 4}, {3, 10.5f}});
      break;
    case Icon::theme:
      pen.ring({8, 8}, 5.5f);
      pen.half_disc({8, 8}, 5.5f);
      break;
    case Icon::folder: pen.line({{2, 12.5f}, {2, 4}, {6.5f, 4}, {8, 5.8f}, {14, 5.8f}, {14, 12.5f}}, true); break;
    case Icon::check: pen.line({{3.5f, 8.5f}, {6.5f, 11.5f}, {12.5f, 4.5f}}); break;
    case Icon::branch:
      pen.line({{4, 4}, {4, 12}});
      pen.curve({4, 10}, {4, 7.5f}, {12, 9.5f}, {12, 6});
      pen.disc({4, 4}, 1.8f);
      pen.disc({4, 12}, 1.8f);
      pen.disc({12, 6}, 1.8f);
      break;
    case Icon::redo:
      pen.arc({8, 8}, 5, 0.35f, 5.9f);
      pen.line({{13, 2.8f}, {13, 6.4f}, {9.4f, 6.4f}});
      break;
    case Icon::send:
      pen.line({{8, 13}, {8, 3.5f}});
      pen.line({{4, 7.5f}, {8, 3.5f}, {12, 7.5f}});
      break;
    case Icon::search:
      pen.ring({7, 7}, 4.2f);
      pen.line({{10, 10}, {13.8f, 13.8f}});
      break;
    case Icon::clip:
      pen.line({{11.5f, 5}, {11.5f, 10.5f}});
      pen.arc({8, 10.5f}, 3.5f, 0, kQuarterTurn * 2);
      pen.line({{4.5f, 10.5f}, {4.5f, 4.5f}});
      pen.arc({7, 4.5f}, 2.5f, kQuarterTurn * 2, kQuarterTurn * 4);
      pen.line({{9.5f, 4.5f}, {9.5f, 10.3f}});
      pen.arc({8, 10.3f}, 1.5f, 0, kQuarterTurn * 2);
      pen.line({{6.5f, 10.3f}, {6.5f, 6}});
      break;
    case Icon::edit:
      pen.line({{3, 13}, {3.4f, 10}, {10.5f, 2.9f}, {13.1f, 5.5f}, {6, 12.6f}}, true);
      pen.line({{8.6f, 4.8f}, {11.2f, 7.4f}});
      break;
    case Icon::trash:
      pen.line({{2.5f, 4.5f}, {13.5f, 4.5f}});
      pen.line({{6, 4.5f}, {6, 2.5f}, {10, 2.5f}, {10, 4.5f}});
      pen.line({{4, 4.5f}, {4.6f, 13.5f}, {11.4f, 13.5f}, {12, 4.5f}});
      break;
    case Icon::left: pen.line({{9.8f, 4.5f}, {6.2f, 8}, {9.8f, 11.5f}}); break;
    case Icon::right: pen.line({{6.2f, 4.5f}, {9.8f, 8}, {6.2f, 11.5f}}); break;
    case Icon::sliders:
      pen.line({{2, 5}, {14, 5}});
      pen.line({{2, 11}, {14, 11}});
      pen.disc({10.5f, 5}, 2.2f);
      pen.disc({5.5f, 11}, 2.2f);
      break;
    case Icon::find:
      pen.ring({8, 8}, 4.5f);
      pen.disc({8, 8}, 1.6f);
      pen.line({{8, 1.5f}, {8, 4}});
      pen.line({{8, 12}, {8, 14.5f}});
      pen.line({{1.5f, 8}, {4, 8}});
      pen.line({{12, 8}, {14.5f, 8}});
      break;
    case Icon::fit:
      pen.line({{2.5f, 6}, {2.5f, 2.5f}, {6, 2.5f}});
      pen.line({{10, 2.5f}, {13.5f, 2.5f}, {13.5f, 6}});
      pen.line({{13.5f, 10}, {13.5f, 13.5f}, {10, 13.5f}});
      pen.line({{6, 13.5f}, {2.5f, 13.5f}, {2.5f, 10}});
      break;
    case Icon::panels:
      pen.frame({2, 3}, {14, 13}, 1.5f);
      pen.line({{6.5f, 3}, {6.5f, 13}});
      pen.line({{6.5f, 9}, {14, 9}});
      break;
    case Icon::more:
      for (const float x : {3.5f, 8.0f, 12.5f}) pen.disc({x, 8}, 1.4f);
      break;
    case Icon::pin:
      pen.line({{5.5f, 2.5f}, {10.5f, 2.5f}});
      pen.line({{6, 2.5f}, {6, 6.5f}, {4, 9.5f}, {12, 9.5f}, {10, 6.5f}, {10, 2.5f}});
      pen.line({{8, 9.5f}, {8, 14}});
      break;
    case Icon::play: pen.triangle({4.5f, 3}, {13, 8}, {4.5f, 13}); break;
    case Icon::pause:
      pen.box({4, 3}, {7, 13}, 1);
      pen.box({9, 3}, {12, 13}, 1);
      break;
    case Icon::next:
      pen.triangle({3.5f, 3}, {10, 8}, {3.5f, 13});
      pen.box({11, 3}, {13, 13}, 1);
      break;
    case Icon::previous:
      pen.triangle({12.5f, 3}, {12.5f, 13}, {6, 8});
      pen.box({3, 3}, {5, 13}, 1);
      break;
    case Icon::first:
      pen.triangle({14, 3}, {14, 13}, {8.5f, 8});
      pen.triangle({8.5f, 3}, {8.5f, 13}, {3, 8});
      pen.box({1.5f, 3}, {3, 13}, 0.5f);
      break;
    case Icon::drop:
      pen.line({{8, 2.5f}, {8, 10}});
      pen.line({{4.8f, 6.8f}, {8, 10}, {11.2f, 6.8f}});
      pen.line({{2.5f, 10}, {2.5f, 13.5f}, {13.5f, 13.5f}, {13.5f, 10}});
      break;
  }
}

void draw_logo(ImDrawList* list, ImVec2 centre, float size) {
  const Colour branch = colours().accent_text, tip = colours().bonus;
  const float unit = size / 24.0f;
  auto at = [&](float x, float y) { return ImVec2(centre.x + (x - 12) * unit, centre.y + (y - 12) * unit); };
  list->AddLine(at(12, 23), at(12, 12), branch, 2.6f * unit);
  list->AddBezierCubic(at(12, 16), at(12, 11), at(5, 13), at(5, 7), branch, 2 * unit);
  list->AddBezierCubic(at(12, 16), at(12, 11), at(19, 13), at(19, 7), branch, 2 * unit);
  list->AddLine(at(12, 13), at(12, 4), branch, 2 * unit);
  list->AddCircleFilled(at(5, 6), 3 * unit, branch);
  list->AddCircleFilled(at(19, 6), 3 * unit, branch);
  list->AddCircleFilled(at(12, 4), 3.4f * unit, tip);
}

void draw_star(ImDrawList* list, ImVec2 c, float r, Colour fill) {
  constexpr float kWaist = 0.45f;  // radius of the inner corners, as a share of the outer
  ImVec2 corner[10];
  for (int i = 0; i < 10; ++i) {
    const float angle = kQuarterTurn * (0.4f * static_cast<float>(i) - 1), reach = i % 2 == 0 ? r : r * kWaist;
    corner[i] = {c.x + reach * std::cos(angle), c.y + reach * std::sin(angle)};
  }
  list->AddConcavePolyFilled(corner, 10, fill);
}

void draw_cross(ImDrawList* list, ImVec2 c, float reach, Colour colour, float width) {
  list->AddLine({c.x - reach, c.y - reach}, {c.x + reach, c.y + reach}, colour, width);
  list->AddLine({c.x + reach, c.y - reach}, {c.x - reach, c.y + reach}, colour, width);
}

void draw_check_disc(ImDrawList* list, ImVec2 c, float r, Colour disc, Colour mark) {
  list->AddCircleFilled(c, r, disc);
  const ImVec2 points[] = {
      {c.x - r * 0.5f, c.y + r * 0.02f}, {c.x - r * 0.12f, c.y + r * 0.4f}, {c.x + r * 0.52f, c.y - r * 0.38f}};
  list->AddPolyline(points, 3, mark, r * 0.28f);
}

void draw_triangle_sign(ImDrawList* list, ImVec2 c, float size, Colour fill, Colour mark) {
  const float u = size / 16.0f;
  list->AddTriangleFilled({c.x, c.y - 6.5f * u}, {c.x + 7.5f * u, c.y + 6.5f * u}, {c.x - 7.5f * u, c.y + 6.5f * u},
                          fill);
  list->AddRectFilled({c.x - 0.8f * u, c.y - 2 * u}, {c.x + 0.8f * u, c.y + 2.5f * u}, mark);
  list->AddRectFilled({c.x - 0.8f * u, c.y + 3.6f * u}, {c.x + 0.8f * u, c.y + 5.2f * u}, mark);
}

namespace {

bool is_number(ImVec2 p) {
  return std::isfinite(p.x) && std::isfinite(p.y);
}

/// Goes along the line and keeps its position in the dash pattern from one segment to the next.
class Walker {
 public:
  Walker(Dash dash, std::vector<ImVec2>& out) : on_(dash.on), period_(dash.on + dash.off), out_(out) {}

  void walk(ImVec2 a, ImVec2 b) {
    const float length = std::hypot(b.x - a.x, b.y - a.y);
    const auto at = [&](float distance) {
      const float t = length > 0 ? distance / length : 0;
      return ImVec2(a.x + (b.x - a.x) * t, a.y + (b.y - a.y) * t);
    };
    for (float done = 0; done < length;) {
      const bool drawn = phase_ < on_;
      const float step = std::min((drawn ? on_ : period_) - phase_, length - done);
      if (drawn && step > 0) {
        out_.push_back(at(done));
        out_.push_back(at(done + step));
      }
      // The least step, so that float rounding cannot make it 0 and the loop endless.
      const float next = done + std::max(step, 1e-3f);
      phase_ = std::fmod(phase_ + (next - done), period_);
      done = next;
    }
  }

  void restart() { phase_ = 0; }

 private:
  float on_, period_;
  float phase_ = 0;
  std::vector<ImVec2>& out_;
};

/// Draws the current path of the list dashed, and clears the path.
void dash_path(ImDrawList* list, Dash dash, Colour colour, float width, bool closed) {
  const std::vector<ImVec2> points(list->_Path.Data, list->_Path.Data + list->_Path.Size);
  list->PathClear();
  add_dashed(list, points, dash, colour, width, closed);
}

}  // namespace

void dash_pieces(std::span<const ImVec2> points, Dash dash, bool closed, std::vector<ImVec2>& out) {
  if (!(dash.on > 0) || !(dash.off > 0)) return;
  Walker walker(dash, out);
  const size_t lines = points.empty() ? 0 : points.size() - (closed ? 0 : 1);
  for (size_t i = 0; i < lines; ++i) {
    const ImVec2 a = points[i], b = points[(i + 1) % points.size()];
    if (is_number(a) && is_number(b))
      walker.walk(a, b);
    else
      walker.restart();
  }
}

void add_dashed(ImDrawList* list, std::span<const ImVec2> points, Dash dash, Colour colour, float width, bool closed) {
  std::vector<ImVec2> pieces;
  dash_pieces(points, dash, closed, pieces);
  for (size_t i = 0; i + 1 < pieces.size(); i += 2) list->AddLine(pieces[i], pieces[i + 1], colour, width);
}

void add_dashed_bezier(ImDrawList* list, ImVec2 p1, ImVec2 p2, ImVec2 p3, ImVec2 p4, Dash dash, Colour colour,
                       float width) {
  list->PathClear();
  list->PathLineTo(p1);
  list->PathBezierCubicCurveTo(p2, p3, p4);
  dash_path(list, dash, colour, width, false);
}

void add_dashed_rect(ImDrawList* list, ImVec2 min, ImVec2 max, float rounding, Dash dash, Colour colour, float width) {
  list->PathClear();
  list->PathRect(min, max, rounding);
  dash_path(list, dash, colour, width, true);
}

}  // namespace canopy::app
