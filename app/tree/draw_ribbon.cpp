#include <algorithm>
#include <utility>

#include <imgui_internal.h>

#include "app/tree/tree_paint.h"

namespace canopy::app {
namespace {

/// Where a cross section of what is drawn is full, and where it ends: distances from the middle in pixels.
struct RibbonEdge {
  float inner, outer;
};

/// Adds three lanes along a spine: a full one between two that fade out. section: edge and strength at a point.
template <class Section>
void add_lanes(ImDrawList* list, const Spine& spine, Colour colour, const Section& section) {
  if (spine.count < 2) return;
  const ImVec2 white = list->_Data->TexUvWhitePixel;
  const Colour clear = colour & 0x00FFFFFFu;
  list->PrimReserve(static_cast<int>(spine.count - 1) * 18, static_cast<int>(spine.count) * 4);
  const auto first = static_cast<ImDrawIdx>(list->_VtxCurrentIdx);
  for (uint32_t i = 0; i < spine.count; ++i) {
    const ImVec2 n = spine.point[i].across, c = spine.point[i].at;
    const auto [edge, strength] = section(spine.point[i]);
    const Colour middle = faded(colour, strength);
    list->PrimWriteVtx({c.x - n.x * edge.outer, c.y - n.y * edge.outer}, white, clear);
    list->PrimWriteVtx({c.x - n.x * edge.inner, c.y - n.y * edge.inner}, white, middle);
    list->PrimWriteVtx({c.x + n.x * edge.inner, c.y + n.y * edge.inner}, white, middle);
    list->PrimWriteVtx({c.x + n.x * edge.outer, c.y + n.y * edge.outer}, white, clear);
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
  add_lanes(list, spine_of(ribbon, reached), colour, [](const SpinePoint& point) {
    // Faded over one pixel at the edges; a ribbon thinner than that is fainter in place of narrower.
    const RibbonEdge edge = {std::max(0.0f, point.half - 0.5f), std::max(point.half + 0.5f, 1.0f)};
    return std::pair(edge, std::min(1.0f, point.half * 2));
  });
}

void glow_ribbon(ImDrawList* list, const Ribbon& ribbon, Colour colour, float reach, float soft, float reached) {
  if (reached <= 0 || (colour >> 24) == 0) return;
  add_lanes(list, spine_of(ribbon, reached, soft), colour, [reach](const SpinePoint& point) {
    return std::pair(RibbonEdge{point.half, point.half + reach}, point.alpha);
  });
}

void outline_ribbon(ImDrawList* list, const Ribbon& ribbon, Colour colour, float reached) {
  if (reached <= 0) return;
  const Spine spine = spine_of(ribbon, reached);
  for (const float side : {-1.0f, 1.0f}) {
    for (uint32_t i = 0; i < spine.count; ++i) {
      const ImVec2 n = spine.point[i].across, c = spine.point[i].at;
      const float reach = side * (spine.point[i].half - 0.5f);
      list->PathLineTo({c.x + n.x * reach, c.y + n.y * reach});
    }
    list->PathStroke(colour, 1);
  }
}

}  // namespace canopy::app
