#include "app/tree/tree_overlays.h"

#include <algorithm>
#include <cmath>

#include "app/tree/token_label.h"

namespace canopy::app {
namespace {

constexpr float kMapWidth = 168, kMapHeight = 84, kMapMargin = 12, kMapPad = 8;

/// Turns points of the canvas into points of the small map.
struct MapScale {
  TreeRect place, bounds;
  float x, y;
  TreePoint at(float cx, float cy) const { return {place.x0 + (cx - bounds.x0) * x, place.y0 + (cy - bounds.y0) * y}; }
};

MapScale map_scale(const TreePaint& paint) {
  TreeRect place = minimap_place(paint);
  const float pad = px(kMapPad);
  place = {place.x0 + pad, place.y0 + pad, place.x1 - pad, place.y1 - pad};
  const TreeRect& b = paint.geometry.bounds;
  return {place, b, (place.x1 - place.x0) / std::max(1.0f, b.x1 - b.x0),
          (place.y1 - place.y0) / std::max(1.0f, b.y1 - b.y0)};
}

}  // namespace

void draw_depths(ImDrawList* list, const TreePaint& paint) {
  const TreeGeometry& g = paint.geometry;
  // An own background, as nodes may be moved below the line of depths.
  list->AddRectFilled(paint.origin, paint.at(paint.size.x, px(20)), faded(colours().canvas, 0.9f));
  float free_from = 0;
  for (uint32_t depth = 0; depth < g.columns.x.size(); ++depth) {
    const std::string words = depth == 0 ? "root" : std::to_string(depth);
    const float width = text_size(Type::mono_caption, words).x;
    const float centre = g.left + g.columns.x[depth] + g.columns.width[depth] * 0.5f;
    const float x = std::max(depth == 0 ? px(6) : 0.0f, centre - width * 0.5f);
    if (x < free_from || x + width > paint.size.x - px(2)) continue;
    draw_text_middle(list, paint.origin.x + x, paint.origin.y + px(10), Type::mono_caption, colours().text3, words);
    free_from = x + width + px(4);
  }
}

TreeRect minimap_place(const TreePaint& paint) {
  const float width = px(kMapWidth), height = px(kMapHeight), margin = px(kMapMargin);
  return {paint.size.x - margin - width, paint.size.y - margin - height, paint.size.x - margin, paint.size.y - margin};
}

TreePoint minimap_to_canvas(const TreePaint& paint, TreePoint point) {
  const MapScale map = map_scale(paint);
  return {map.bounds.x0 + (point.x - map.place.x0) / std::max(map.x, 1e-6f),
          map.bounds.y0 + (point.y - map.place.y0) / std::max(map.y, 1e-6f)};
}

void draw_minimap(ImDrawList* list, const TreePaint& paint) {
  const Theme& t = colours();
  const TreeRect frame = minimap_place(paint);
  const MapScale map = map_scale(paint);
  const ImVec2 a = paint.at(frame.x0, frame.y0), b = paint.at(frame.x1, frame.y1);
  list->AddRectFilled(a, b, faded(t.panel, 0.95f), px(4));
  list->AddRect(a, b, t.ctl, px(4));
  list->PushClipRect(a, b, true);
  for (const NodeFate fate : {NodeFate::not_reached, NodeFate::rejected, NodeFate::accepted, NodeFate::bonus}) {
    const Colour colour = fate == NodeFate::not_reached ? t.unreached_edge : fate_colour(fate);
    for (uint32_t i = 1; i < paint.tree.size(); ++i) {
      if (paint.tree.nodes[i].fate != fate) continue;
      const NodeBox &from = paint.geometry.nodes[paint.tree.nodes[i].parent], &to = paint.geometry.nodes[i];
      const TreePoint p = map.at(from.x, from.y), q = map.at(to.x, to.y);
      const float width = fate == NodeFate::accepted || fate == NodeFate::bonus ? std::max(2.0f, px(2)) : 1.0f;
      const float turn = p.x + std::min(px(4), (q.x - p.x) * 0.5f);
      if (std::abs(p.y - q.y) > 0.5f) list->AddLine(paint.at(p.x, p.y), paint.at(turn, q.y), colour, width);
      list->AddLine(paint.at(std::abs(p.y - q.y) > 0.5f ? turn : p.x, q.y), paint.at(q.x, q.y), colour, width);
    }
  }
  const TreePoint c = map.at(0, 0), d = map.at(paint.size.x, paint.size.y);
  const ImVec2 view_a = {std::max(a.x + 2, paint.origin.x + c.x), std::max(a.y + 2, paint.origin.y + c.y)};
  const ImVec2 view_b = {std::min(b.x - 2, paint.origin.x + d.x), std::min(b.y - 2, paint.origin.y + d.y)};
  list->AddRect(view_a, view_b, t.text, 0, units(1.2f));
  list->PopClipRect();
}

void draw_draft_positions(ImDrawList* list, const TreePaint& paint) {
  const Theme& t = colours();
  const TreeGeometry& g = paint.geometry;
  const std::vector<std::vector<uint32_t>> positions = draft_positions(paint.tree);
  const float pitch = px(26), root_y = g.nodes[0].y, height = px(21);
  const auto below = std::max(0.0f, std::floor((paint.size.y - root_y) / pitch - 0.7f));
  const float cell = text_size(Type::mono, "0").x;
  for (size_t d = 0; d < positions.size() && d + 1 < g.columns.x.size(); ++d) {
    const float x = g.left + g.columns.x[d + 1],
                next = d + 2 < g.columns.x.size() ? g.columns.x[d + 2] + g.left : paint.size.x;
    const float width = std::max(px(14), std::min(next - x - px(8), px(96)));
    for (size_t rank = 0; rank < std::min(positions[d].size(), static_cast<size_t>(below)); ++rank) {
      const uint32_t node = positions[d][rank];
      const float y = root_y + static_cast<float>(rank) * pitch;
      const ImVec2 a = paint.at(x, y - height * 0.5f), b = {a.x + width, a.y + height};
      if (rank == 0) {
        list->AddRectFilled(a, {a.x + width * paint.reveal.filled, b.y}, faded(t.draft, 0.28f), height * 0.28f);
        list->AddRect(a, b, t.draft, height * 0.28f, units(1.2f));
      }
      const size_t room = static_cast<size_t>(std::max(1.0f, std::floor((width - px(12)) / cell)));
      const Colour colour = faded(rank == 0 ? t.text : t.text3, paint.reveal.filled);
      draw_text_middle(list, a.x + px(6), (a.y + b.y) * 0.5f, Type::mono, colour, shortened(paint.labels[node], room));
    }
  }
}

void draw_phases(ImDrawList* list, ImVec2 pos, float width, Phase phase, float progress) {
  const Theme& t = colours();
  const float gap = px(6), card = (width - gap * (kPhases - 1)) / kPhases, height = px(30);
  for (uint32_t i = 0; i < kPhases; ++i) {
    const bool on = i == static_cast<uint32_t>(phase);
    const ImVec2 a = {std::floor(pos.x + static_cast<float>(i) * (card + gap)), pos.y}, b = {a.x + card, a.y + height};
    const PhaseText& text = phase_texts()[i];
    const float middle = (a.y + b.y) * 0.5f;
    list->AddRectFilled(a, b, on ? t.accent_bg : t.card, px(6));
    list->AddRect(a, b, on ? t.accent : t.line, px(6));
    draw_text_middle(list, a.x + px(10), middle, Type::mono, on ? t.accent_text : t.text3, std::to_string(i + 1));
    draw_text_middle(list, a.x + px(24), middle, on ? Type::base_semibold : Type::base_medium, t.text,
                     elided(Type::base_semibold, text.name, card - px(28)));
    if (!on) continue;
    const float whole = card - px(12);
    list->AddRectFilled({a.x + px(6), b.y - px(3)}, {a.x + px(6) + whole * progress, b.y - px(1)}, t.accent);
    // The caption stands below the card of the present phase, inside the strip.
    const float room = pos.x + width - text_size(Type::secondary, text.words).x;
    draw_text_middle(list, std::max(pos.x, std::min(a.x + px(10), room)), b.y + px(12), Type::secondary, t.text2,
                     text.words);
  }
}

}  // namespace canopy::app
