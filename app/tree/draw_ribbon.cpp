#include <algorithm>
#include <array>
#include <cmath>

#include <imgui_internal.h>

#include "app/tree/tree_paint.h"

namespace canopy::app {
namespace {

constexpr uint32_t kPieces = 22, kFewestPieces = 6;  // of a curve

/// The middle line of a ribbon with half its thickness at each point.
struct Spine {
  std::array<ImVec2, kPieces + 2> point;
  std::array<float, kPieces + 2> half;
  uint32_t count = 0;

  void add(ImVec2 at, float reach) {
    point[count] = at;
    half[count++] = reach;
  }

  /// Leaves out what lies right of `x`. The points are in order of x.
  void cut(float x) {
    for (uint32_t i = 1; i < count; ++i) {
      if (point[i].x <= x) continue;
      const float t = std::clamp((x - point[i - 1].x) / std::max(point[i].x - point[i - 1].x, 1e-3f), 0.0f, 1.0f);
      point[i] = {point[i - 1].x + (point[i].x - point[i - 1].x) * t,
                  point[i - 1].y + (point[i].y - point[i - 1].y) * t};
      half[i] = half[i - 1] + (half[i] - half[i - 1]) * t;
      count = i + 1;
      return;
    }
  }

  /// The unit vector across the ribbon at a point, downward where it runs to the right.
  ImVec2 across(uint32_t i) const {
    const ImVec2 a = point[i > 0 ? i - 1 : 0], b = point[std::min(i + 1, count - 1)];
    const float dx = b.x - a.x, dy = b.y - a.y, length = std::sqrt(dx * dx + dy * dy);
    return length < 1e-4f ? ImVec2(0, 1) : ImVec2(-dy / length, dx / length);
  }
};

Spine spine_of(const Ribbon& ribbon, float reached) {
  Spine spine;
  const float begin = ribbon.begin * 0.5f, end = ribbon.end * 0.5f;
  if (ribbon.from < ribbon.p.x - 0.5f) spine.add({ribbon.from, ribbon.p.y}, begin);
  const bool level = std::abs(ribbon.p.y - ribbon.q.y) < 0.5f && std::abs(begin - end) < 0.5f;
  // Flat curves and thin ones need fewer.
  const float rise = std::abs(ribbon.p.y - ribbon.q.y), step = units(std::max(begin, end) < units(2) ? 14 : 4);
  const uint32_t pieces = level ? 1 : std::clamp(static_cast<uint32_t>(rise / step) + 5, kFewestPieces, kPieces);
  for (uint32_t i = 0; i <= pieces; ++i) {
    // Level ends and controls at half make both coordinates simple: y eases, x is nearly even.
    const float u = static_cast<float>(i) / static_cast<float>(pieces), eased = u * u * (3 - 2 * u);
    const float x = 1.5f * u * (1 - u) * (1 - u) + 1.5f * u * u * (1 - u) + u * u * u;
    spine.add({ribbon.p.x + (ribbon.q.x - ribbon.p.x) * x, ribbon.p.y + (ribbon.q.y - ribbon.p.y) * eased},
              begin + (end - begin) * eased);
  }
  if (reached < 1) spine.cut(ribbon.from + (ribbon.q.x - ribbon.from) * reached);
  return spine;
}

}  // namespace

void fill_ribbon(ImDrawList* list, const Ribbon& ribbon, Colour colour, float reached) {
  if (reached <= 0 || (colour >> 24) == 0) return;
  const Spine spine = spine_of(ribbon, reached);
  if (spine.count < 2) return;
  const ImVec2 white = list->_Data->TexUvWhitePixel;
  const Colour clear = colour & 0x00FFFFFFu;
  list->PrimReserve(static_cast<int>(spine.count - 1) * 18, static_cast<int>(spine.count) * 4);
  const auto first = static_cast<ImDrawIdx>(list->_VtxCurrentIdx);
  for (uint32_t i = 0; i < spine.count; ++i) {
    const ImVec2 n = spine.across(i), c = spine.point[i];
    // Faded over one pixel at the edges; a ribbon thinner than that is fainter in place of narrower.
    const float half = spine.half[i], inner = std::max(0.0f, half - 0.5f), outer = std::max(half + 0.5f, 1.0f);
    const Colour middle = half < 0.5f ? faded(colour, half * 2) : colour;
    list->PrimWriteVtx({c.x - n.x * outer, c.y - n.y * outer}, white, clear);
    list->PrimWriteVtx({c.x - n.x * inner, c.y - n.y * inner}, white, middle);
    list->PrimWriteVtx({c.x + n.x * inner, c.y + n.y * inner}, white, middle);
    list->PrimWriteVtx({c.x + n.x * outer, c.y + n.y * outer}, white, clear);
  }
  for (uint32_t i = 0; i + 1 < spine.count; ++i) {
    for (uint32_t lane = 0; lane < 3; ++lane) {
      const auto a = static_cast<ImDrawIdx>(first + i * 4 + lane), b = static_cast<ImDrawIdx>(a + 4);
      for (const ImDrawIdx index :
           {a, static_cast<ImDrawIdx>(a + 1), static_cast<ImDrawIdx>(b + 1), a, static_cast<ImDrawIdx>(b + 1), b})
        list->PrimWriteIdx(index);
    }
  }
}

void outline_ribbon(ImDrawList* list, const Ribbon& ribbon, Colour colour, float reached) {
  if (reached <= 0) return;
  const Spine spine = spine_of(ribbon, reached);
  for (const float side : {-1.0f, 1.0f}) {
    for (uint32_t i = 0; i < spine.count; ++i) {
      const ImVec2 n = spine.across(i), c = spine.point[i];
      const float reach = side * (spine.half[i] - 0.5f);
      list->PathLineTo({c.x + n.x * reach, c.y + n.y * reach});
    }
    list->PathStroke(colour, 1);
  }
}

}  // namespace canopy::app
