#include "app/tree/tree_overlays.h"

#include <algorithm>
#include <cmath>

#include "app/tree/tree_geometry.h"
#include "app/tree/tree_look.h"
#include "app/tree/tree_model.h"
#include "app/ui/look.h"

namespace canopy::app {
namespace {

constexpr size_t kDraftCards = 8;   // of one position
constexpr uint32_t kNumbered = 41;  // rows of the largest tree whose nodes are numbered while it grows
constexpr float kMapWidth = 168, kMapHeight = 84, kMapMargin = 12, kMapPad = 8,
                kMapTop = 24;  // below the line of depths

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

std::vector<TreeRect> taken_by(const TreePaint& paint) {
  std::vector<TreeRect> taken = path_pills(paint.tree, paint.geometry, look().scale);
  for (const TreeRect& each : other_words(paint.tree, paint.geometry, look().scale)) taken.push_back(each);
  return taken;
}

/// Where a note is clear of all words; on a canvas that is full of them at its first place, over what is there.
TreeRect note_place(const TreePaint& paint, TreePoint size, float wished_x) {
  const auto places = note_places({paint.size.x, paint.size.y, look().scale}, size, wished_x);
  const float bottom = paint.size.y - px(4);
  const TreeRect first = {wished_x, bottom - size.y, wished_x + size.x, bottom};
  return clear_place(places, taken_by(paint)).value_or(places.empty() ? first : places.front());
}

/// Draws the sentence of a phase in a strip, `indent` pixels from its left where it fits there; else in two lines.
void draw_phase_words(ImDrawList* list, ImVec2 pos, float indent, float width, const std::string& words) {
  const float whole = text_size(Type::secondary, words).x;
  if (whole <= width) {
    draw_text_middle(list, pos.x + std::min(indent, width - whole), pos.y + px(12), Type::secondary, colours().text2,
                     words);
    return;
  }
  TextBlock block;
  block.layout(words, Type::caption, width);
  block.draw(list, pos, words, Type::caption, colours().text2, px(13));
}

}  // namespace

void draw_depths(ImDrawList* list, const TreePaint& paint) {
  const TreeGeometry& g = paint.geometry;
  // An own background, as nodes may be moved below the line of depths.
  list->AddRectFilled(paint.origin, paint.at(paint.size.x, px(20)), faded(colours().canvas, 0.9f));
  float free_from = 0;
  for (uint32_t depth = 0; depth < g.columns.x.size(); ++depth) {
    const std::string words = depth_words(depth);
    const float width = text_size(Type::caption, words).x;
    const float x = g.left + g.columns.x[depth];
    if (x < free_from || x + width > paint.size.x - px(16)) continue;
    draw_text_middle(list, paint.origin.x + x, paint.origin.y + px(12), Type::caption, colours().text3, words);
    free_from = x + width + px(4);
  }
}

TreeRect minimap_place(const TreePaint& paint) {
  const float least = std::min(paint.size.x / 4, paint.size.y / 2.5f);  // of a small canvas it covers a small part
  const float width = std::min(px(kMapWidth), least), height = width * kMapHeight / kMapWidth, margin = px(kMapMargin);
  // In the corner at the right that the accepted path does not lead to; where the tree is moved changes nothing of it.
  const TreeRect& all = paint.geometry.bounds;
  const bool low =
      !paint.tree.path.empty() && paint.geometry.nodes[paint.tree.path.back()].y > (all.y0 + all.y1) * 0.5f;
  const float bottom = low ? px(kMapTop) + height : paint.size.y - margin;
  return {paint.size.x - margin - width, bottom - height, paint.size.x - margin, bottom};
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
    const Colour colour = fate == NodeFate::not_reached ? t.limb_unreached : fate_colour(t, fate);
    for (uint32_t i = 1; i < paint.tree.size(); ++i) {
      if (paint.tree.nodes[i].fate != fate || !paint.geometry.nodes[i].named) continue;
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
  const float pitch = px(32), height = px(26), shown = ease_out(paint.reveal.filled);
  const auto most = static_cast<size_t>(std::max(1.0f, (paint.size.y - px(40)) / pitch));
  for (size_t d = 0; d < positions.size() && d + 1 < g.columns.x.size(); ++d) {
    const size_t count = std::min({positions[d].size(), most, kDraftCards});
    const float x = g.left + g.columns.x[d + 1];
    const float next = d + 2 < g.columns.x.size() ? g.columns.x[d + 2] + g.left : paint.size.x;
    const float width = std::max(px(14), std::min(next - x - px(8), px(112)));
    for (size_t rank = 0; rank < count; ++rank) {
      const uint32_t node = positions[d][rank];
      const float q = static_cast<float>(paint.tree.nodes[node].q);
      const float y = g.nodes[0].y + (static_cast<float>(rank) - static_cast<float>(count - 1) * 0.5f) * pitch;
      const float strength = shown * (0.45f + 0.55f * std::sqrt(q));
      const ImVec2 a = paint.at(x, std::clamp(y, height, paint.size.y - height) - height * 0.5f);
      const ImVec2 b = {a.x + width, a.y + height};
      list->AddRectFilled(a, b, faded(t.card, strength), px(6));
      list->AddRect(a, b, faded(t.ctl, strength), px(6));
      draw_word(list, {a.x + px(8), a.y + height * 0.42f}, Type::mono, text_height(Type::mono), faded(t.text, strength),
                paint.labels[node], width - px(14));
      const float bar = width - px(16), y_bar = b.y - px(5.5f);
      list->AddRectFilled({a.x + px(8), y_bar}, {a.x + px(8) + bar, y_bar + px(2.5f)}, faded(t.line, strength));
      list->AddRectFilled({a.x + px(8), y_bar}, {a.x + px(8) + std::max(px(2), bar * q) * shown, y_bar + px(2.5f)},
                          faded(t.draft, strength));
    }
  }
}

void draw_order(ImDrawList* list, const TreePaint& paint) {
  if (paint.tree.size() > kNumbered) return;
  const float scale = look().scale, height = text_height(Type::mono_caption);
  std::vector<TreeRect> taken = taken_by(paint);
  for (uint32_t i = 1; i < paint.tree.size(); ++i) {
    if (!paint.geometry.nodes[i].named || i == paint.tree.bonus) continue;
    const std::string number = std::to_string(i);
    const auto places =
        number_places(pill_of(paint.geometry, i, scale), {text_size(Type::mono_caption, number).x, height}, scale);
    const std::optional<TreeRect> place = clear_place(places, taken);
    if (!place) continue;
    taken.push_back(*place);  // also of a number that is not there yet, so that no number moves
    if (paint.reveal.nodes[i].shown <= 0) continue;
    draw_text_middle(list, paint.origin.x + place->x0, paint.origin.y + (place->y0 + place->y1) * 0.5f,
                     Type::mono_caption, faded(colours().text3, paint.reveal.nodes[i].shown), number);
  }
}

void draw_one_pass(ImDrawList* list, const TreePaint& paint) {
  const Theme& t = colours();
  const float strength = std::min(1.0f, 3 * std::min(paint.reveal.verified, 1.15f - paint.reveal.verified));
  if (strength <= 0) return;
  const ImVec2 a = paint.origin, b = paint.at(paint.size.x, paint.size.y), middle = paint.at(paint.size.x * 0.5f, 0);
  const Colour none = with_alpha(t.accent, 0), wash = with_alpha(t.accent, 0.16f * strength);
  list->AddRectFilledMultiColor(a, {middle.x, b.y}, none, wash, wash, none);
  list->AddRectFilledMultiColor({middle.x, a.y}, b, wash, none, none, wash);
}

void draw_pass_count(ImDrawList* list, const TreePaint& paint) {
  const Theme& t = colours();
  const uint32_t guesses = paint.tree.size() - 1 - (paint.tree.bonus ? 1 : 0);
  const std::string words = "one pass, " + std::to_string(guesses) + (guesses == 1 ? " guess" : " guesses");
  const TreePoint size = {text_size(Type::base_medium, words).x + px(24), px(24)};
  const TreeRect place = note_place(paint, size, (paint.size.x - size.x) * 0.5f);
  list->AddRectFilled(paint.at(place.x0, place.y0), paint.at(place.x1, place.y1), t.accent_bg, px(12));
  draw_text_middle(list, paint.origin.x + place.x0 + px(12), paint.origin.y + (place.y0 + place.y1) * 0.5f,
                   Type::base_medium, t.accent_text, words);
}

void draw_plain_ghost(ImDrawList* list, const TreePaint& paint) {
  if (paint.tree.path.size() < 2) return;
  const Theme& t = colours();
  const uint32_t first = paint.tree.path[1];
  const NodeReveal& node = paint.reveal.nodes[first];
  const bool told = node.judged && node.lit >= 1 && node.shown >= 1;
  const std::string words = "Plain decoding, one pass:", label = told ? paint.labels[first] : "?";
  const float before = text_size(Type::secondary, words).x + px(8);
  // With room for the word from the beginning, so that the note stays where it is when the word is told.
  const float most = text_size(Type::mono, paint.labels[first]).x + px(16);
  const TreeRect place = note_place(paint, {px(8) + before + most + px(8), px(30)}, px(6));
  const ImVec2 a = paint.at(place.x0, place.y0), b = paint.at(place.x1, place.y1);
  const float x = a.x + px(8) + before, middle = (a.y + b.y) * 0.5f;
  const float width = text_size(Type::mono, label).x + px(16);
  list->AddRectFilled(a, b, t.canvas, px(6));  // over the limbs that are there
  draw_text_middle(list, a.x + px(8), middle, Type::secondary, t.text2, words);
  add_dashed_rect(list, {x, middle - px(11)}, {x + width, middle + px(11)}, px(6), {units(3), units(3)}, t.text3,
                  units(1));
  draw_word(list, {x + px(8), middle}, Type::mono, text_height(Type::mono), t.text2, label, width);
}

void draw_phases(ImDrawList* list, ImVec2 pos, float width, Phase phase, float progress, const ShownTree& shown) {
  const Theme& t = colours();
  const float gap = px(6), card = (width - gap * (kPhases - 1)) / kPhases, height = px(30);
  for (uint32_t i = 0; i < kPhases; ++i) {
    const bool on = i == static_cast<uint32_t>(phase);
    const ImVec2 a = {std::floor(pos.x + static_cast<float>(i) * (card + gap)), pos.y}, b = {a.x + card, a.y + height};
    const std::string_view name = phase_name(static_cast<Phase>(i), shown.model);
    const float middle = (a.y + b.y) * 0.5f;
    list->AddRectFilled(a, b, on ? t.accent_bg : t.card, px(6));
    list->AddRect(a, b, on ? t.accent : t.line, px(6));
    draw_text_middle(list, a.x + px(10), middle, Type::mono, on ? t.accent_text : t.text3, std::to_string(i + 1));
    draw_text_middle(list, a.x + px(24), middle, on ? Type::base_semibold : Type::base_medium, t.text,
                     elided(Type::base_semibold, name, card - px(28)));
    if (!on) continue;
    const float whole = card - px(12);
    list->AddRectFilled({a.x + px(6), b.y - px(3)}, {a.x + px(6) + whole * progress, b.y - px(1)}, t.accent);
    draw_phase_words(list, {pos.x, b.y}, a.x + px(10) - pos.x, width,
                     phase_sentence(phase, shown.record->emitted.size(), shown.model));
  }
}

namespace {

constexpr float kApart = 60.0f / 700.0f;  // share of the phase between the starts of two words
constexpr float kTrail = 0.18f;           // share of the way over which a word draws its trail

void draw_flying(ImDrawList* list, const TreeCanvas& tree, uint32_t node, ImVec2 to, float t) {
  const Theme& theme = colours();
  const bool bonus = tree.shown().model.bonus == node;
  const ImVec2 from = tree.screen_of(node), at = flight(from, to, t),
               behind = flight(from, to, std::max(0.0f, t - kTrail));
  const std::string& label = tree.shown().labels[node];
  const float width = text_size(Type::mono_semibold, label).x + px(16), half = px(11);
  const Colour colour = bonus ? theme.bonus : theme.accepted;
  list->AddLine(behind, at, with_alpha(colour, 0.5f), units(2));
  const ImVec2 a = {at.x - width * 0.5f, at.y - half}, b = {at.x + width * 0.5f, at.y + half};
  list->AddRectFilled(a, b, bonus ? theme.bonus_bg : theme.accepted_bg, half * 0.5f);
  list->AddRect(a, b, colour, half * 0.5f, units(1.5f));
  draw_word(list, {a.x + px(8), at.y}, Type::mono_semibold, text_height(Type::mono_semibold),
            bonus ? theme.bonus_text : theme.text, label, width);
}

}  // namespace

ImVec2 flight(ImVec2 from, ImVec2 to, float t) {
  return {from.x + (to.x - from.x) * ease_in_out(t), from.y + (to.y - from.y) * std::clamp(t, 0.0f, 1.0f)};
}

float flown(float progress, size_t index, size_t words) {
  const float apart = words > 1 ? std::min(kApart, 0.4f / static_cast<float>(words - 1)) : 0;
  const float start = apart * static_cast<float>(index), length = kArrived - apart * static_cast<float>(words - 1);
  return std::clamp((progress - start) / length, 0.0f, 1.0f);
}

void draw_flying_words(ImDrawList* list, const TreeCanvas& tree, const Playback& playback, ImVec2 text_end) {
  if (!playback.slow_motion || playback.phase != Phase::commit || playback.told() || !tree.shown().record) return;
  const std::vector<uint32_t>& path = tree.shown().model.path;
  const size_t words = path.size() - 1;  // the root was in the text before
  for (size_t i = 0; i < words; ++i) {
    const float t = flown(playback.progress, i, words);
    if (t > 0) draw_flying(list, tree, path[i + 1], text_end, t);
  }
}

}  // namespace canopy::app
