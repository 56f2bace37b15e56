#include "app/look/dash.h"

#include <algorithm>
#include <cmath>

namespace canopy::app {
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
