#include <algorithm>
#include <cmath>

#include <imgui_internal.h>

#include "app/tree/tree_paint.h"

namespace canopy::app {
namespace {

/// A cross section of what is drawn: how strong it is in the middle, up to where it is full, and where it ends above
/// and below; distances from the middle in pixels.
struct RibbonSection {
  float strength, inner, above, below;
};

/// Adds three lanes along a spine: a full one between two that fade out. section: the one at a point.
template <class Section>
void add_lanes(ImDrawList* list, const Spine& spine, Colour colour, const Section& section) {
  if (spine.count < 2) return;
  const ImVec2 white = list->_Data->TexUvWhitePixel;
  const Colour clear = colour & 0x00FFFFFFu;
  list->PrimReserve(static_cast<int>(spine.count - 1) * 18, static_cast<int>(spine.count) * 4);
  const auto first = static_cast<ImDrawIdx>(list->_VtxCurrentIdx);
  for (uint32_t i = 0; i < spine.count; ++i) {
    const TreePoint n = spine.point[i].across, c = spine.point[i].at;
    const RibbonSection at = section(i);
    const Colour middle = faded(colour, at.strength);
    list->PrimWriteVtx({c.x - n.x * at.above, c.y - n.y * at.above}, white, clear);
    list->PrimWriteVtx({c.x - n.x * at.inner, c.y - n.y * at.inner}, white, middle);
    list->PrimWriteVtx({c.x + n.x * at.inner, c.y + n.y * at.inner}, white, middle);
    list->PrimWriteVtx({c.x + n.x * at.below, c.y + n.y * at.below}, white, clear);
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

}  // namespace

void fill_ribbon(ImDrawList* list, const Ribbon& ribbon, Colour colour, float reached) {
  if (reached <= 0 || (colour >> 24) == 0) return;
  const Spine spine = spine_of(ribbon, reached);
  add_lanes(list, spine, colour, [&](uint32_t i) {
    // Faded over one pixel at the edges; a ribbon thinner than that is fainter in place of narrower.
    const float half = spine.point[i].half, end = std::max(half + 0.5f, 1.0f);
    return RibbonSection{std::min(1.0f, half * 2), std::max(0.0f, half - 0.5f), end, end};
  });
}

void glow_ribbon(ImDrawList* list, const Ribbon& ribbon, Colour colour, float reach, float soft, float reached) {
  if (reached <= 0 || (colour >> 24) == 0) return;
  const Spine spine = spine_of(ribbon, reached, soft);
  add_lanes(list, spine, colour, [&](uint32_t i) {
    const SpinePoint& point = spine.point[i];
    // In a bend the light ends before the bend's centre, as beyond it it would be folded over itself.
    const float bend = bend_at(spine, i), whole = point.half + reach;
    const float within = std::clamp(1 / std::max(std::abs(bend), 1e-6f), point.half, whole);
    return RibbonSection{point.alpha, point.half, bend < 0 ? within : whole, bend > 0 ? within : whole};
  });
}

void outline_ribbon(ImDrawList* list, const Ribbon& ribbon, Colour colour, float reached) {
  if (reached <= 0) return;
  const Spine spine = spine_of(ribbon, reached);
  for (const float side : {-1.0f, 1.0f}) {
    for (uint32_t i = 0; i < spine.count; ++i) {
      const TreePoint n = spine.point[i].across, c = spine.point[i].at;
      const float reach = side * (spine.point[i].half - 0.5f);
      list->PathLineTo({c.x + n.x * reach, c.y + n.y * reach});
    }
    list->PathStroke(colour, 1);
  }
}

}  // namespace canopy::app
