#include <algorithm>
#include <array>
#include <cmath>

#include <imgui_internal.h>

#include "app/layout/token_label.h"
#include "app/layout/tree_caption.h"
#include "app/look/icons.h"
#include "app/tree/tree_paint.h"

namespace canopy::app {
namespace {

using namespace tree_design;

/// Draws light around a rectangle with round corners. rings: distance from it in units, and the strength there.
template <size_t Rings>
void glow_around(ImDrawList* list, ImVec2 a, ImVec2 b, float round, Colour colour, float strength,
                 const std::array<std::pair<float, float>, Rings>& rings) {
  constexpr uint32_t kSteps = 6, kPoints = 4 * (kSteps + 1);  // of a corner; of a ring
  constexpr float kQuarter = 1.5707964f;
  const std::array<ImVec2, 4> centres = {ImVec2(b.x - round, b.y - round), ImVec2(a.x + round, b.y - round),
                                         ImVec2(a.x + round, a.y + round), ImVec2(b.x - round, a.y + round)};
  list->PrimReserve((Rings - 1) * kPoints * 6, Rings * kPoints);
  const auto first = static_cast<ImDrawIdx>(list->_VtxCurrentIdx);
  for (const auto& [distance, alpha] : rings) {
    const Colour here = alpha > 0 ? faded(colour, alpha * strength) : colour & 0x00FFFFFFu;
    for (uint32_t corner = 0; corner < 4; ++corner)
      for (uint32_t i = 0; i <= kSteps; ++i) {
        const float angle = kQuarter * (static_cast<float>(corner) + static_cast<float>(i) / kSteps);
        const float reach = round + units(distance);
        list->PrimWriteVtx({centres[corner].x + std::cos(angle) * reach, centres[corner].y + std::sin(angle) * reach},
                           list->_Data->TexUvWhitePixel, here);
      }
  }
  for (uint32_t ring = 0; ring + 1 < Rings; ++ring)
    for (uint32_t i = 0; i < kPoints; ++i) {
      const uint32_t next = (i + 1) % kPoints, from = ring * kPoints;
      for (const uint32_t each :
           {from + i, from + next, from + kPoints + next, from + i, from + kPoints + next, from + kPoints + i})
        list->PrimWriteIdx(static_cast<ImDrawIdx>(first + each));
    }
}

class Words {
 public:
  Words(ImDrawList* list, const TreePaint& paint)
      : list_(list), p_(paint), g_(paint.geometry), scale_(look().scale * g_.text_scale) {}

  void draw() {
    // The path last, so that its glow lies on top of its neighbours.
    for (const bool path : {false, true}) {
      for (uint32_t node = 0; node < p_.tree.size(); ++node) {
        const NodeBox& box = g_.nodes[node];
        const float reach = units(24);
        if (!box.named || p_.tree.on_path(node) != path || p_.strength(node) <= 0) continue;
        if (!p_.visible(box.x - reach, box.y - reach, box.x + box.width + reach, box.y + reach)) continue;
        word(node, box);
      }
    }
  }

 private:
  void word(uint32_t node, const NodeBox& box) {
    const NodeLook look = p_.look_of(node);
    const float strength = p_.strength(node), half = g_.pill_height * 0.5f;
    const ImVec2 a = p_.at(box.x, box.y - half), b = p_.at(box.x + p_.width_of(node), box.y + half);
    const float lit = look == NodeLook::accepted ? p_.reveal.nodes[node].lit : 1;
    // A word lights up when the light has run through the limb to it.
    const NodeLook now = look == NodeLook::accepted && lit < 1 ? NodeLook::undecided : look;
    frame(now, a, b, strength, node == p_.hovered || node == p_.selected);
    if (p_.reveal.verified > 0 && look != NodeLook::root) {
      // While the target checks the tree all words have the same frame, as they go through one pass.
      list_->AddRect(a, b, faded(colours().accent, p_.reveal.verified * strength), g_.pill_height * 0.28f, units(1.5f));
    }
    const bool strong = now == NodeLook::accepted || now == NodeLook::bonus || now == NodeLook::root;
    const float left = now == NodeLook::root ? 10 : look == NodeLook::bonus ? 14 : pad_left;
    draw_word(list_, p_.at(box.x + left * scale_, box.y), strong ? Type::mono_semibold : Type::mono,
              text_height(Type::mono, g_.text) * g_.text_scale, faded(word_colour(colours(), now), strength),
              p_.labels[node], box.label_room);
    if (g_.figures && (now == NodeLook::accepted || now == NodeLook::rejected))
      figure(p_.tree.nodes[node].q, now, b, strength);
    badge(now, p_.at(box.x, box.y), strength);
  }

  void frame(NodeLook look, ImVec2 a, ImVec2 b, float strength, bool marked) {
    const Theme& t = colours();
    const float round = (b.y - a.y) * 0.28f;
    const auto fill = [&](Colour colour) { list_->AddRectFilled(a, b, faded(colour, strength), round); };
    const auto line = [&](Colour colour, float width) {
      list_->AddRect(a, b, faded(colour, strength), round, units(width));
    };
    switch (look) {
      case NodeLook::root:
        fill(t.raised);
        line(t.text2, 1.5f);
        break;
      case NodeLook::undecided:
        fill(marked ? t.raised : t.card);
        line(t.ctl, 1);
        break;
      case NodeLook::accepted:
        glow(a, b, round, strength);
        fill(t.accepted_bg);
        line(t.accepted, 1.5f);
        break;
      case NodeLook::rejected:
        // Round corners, which cost vertices, are seen only where it has a colour of its own.
        list_->AddRectFilled(a, b, faded(marked ? t.rejected_bg : t.canvas, strength), marked ? round : 0);
        add_dashed_rect(list_, a, b, round, dash(), faded(t.rejected, strength), units(1.2f));
        break;
      case NodeLook::bonus:
        fill(t.bonus_bg);
        add_dashed_rect(list_, a, b, round, bonus_dash(), faded(t.bonus, strength), units(1.5f));
        break;
      case NodeLook::not_reached:
        // Free of the limb below, so that the word can be read. Round corners, which cost vertices, are seen only where
        // it is raised.
        list_->AddRectFilled({a.x + units(4), a.y + units(2)}, {b.x, b.y - units(2)},
                             faded(marked ? t.raised : t.canvas, strength), marked ? units(4) : 0);
        break;
    }
  }

  /// In the widest trees a square, as in tufts, which costs a fifth of the vertices.
  void dot(ImVec2 at, Colour colour) {
    if (p_.tree.size() < kManyNodes)
      list_->AddCircleFilled(at, units(2.4f), colour, 10);
    else
      list_->AddRectFilled({at.x - units(2), at.y - units(2)}, {at.x + units(2), at.y + units(2)}, colour);
  }

  /// Longer dashes in the widest trees: those have many pills, and each dash costs vertices.
  Dash dash() const { return p_.tree.size() < kManyNodes ? rejected_dash() : Dash{units(16), units(10)}; }

  void glow(ImVec2 a, ImVec2 b, float round, float strength) {
    // Rings of falling strength around the pill, each fading into the next.
    constexpr std::array<std::pair<float, float>, 4> kGlow = {{{0, .2f}, {2.5f, .1f}, {5, .04f}, {8, 0}}};
    glow_around(list_, a, b, round, colours().accepted, strength, kGlow);
  }

  void figure(double q, NodeLook look, ImVec2 end, float strength) {
    const Theme& t = colours();
    const std::string words = percentage(q);
    const float size = text_height(Type::mono_caption, figure_text) * g_.text_scale;
    const float width = text_size(Type::mono_caption, words).x * size / text_height(Type::mono_caption);
    const ImVec2 at = {end.x - pad_right * scale_ - width, end.y - g_.pill_height * 0.5f - size * 0.5f};
    const Colour colour = look == NodeLook::accepted ? t.accepted_text : t.rejected_text;
    list_->AddText(font_of(Type::mono_caption), size, {std::floor(at.x), std::floor(at.y)}, faded(colour, strength),
                   words.data(), words.data() + words.size());
  }

  void badge(NodeLook look, ImVec2 at, float strength) {
    const float reach = std::min(tree_design::badge * scale_, g_.pill_height * 0.42f);
    const Colour ground = colours().canvas;
    switch (look) {
      case NodeLook::root: break;
      case NodeLook::undecided: break;
      case NodeLook::accepted: draw_fate_badge(list_, NodeFate::accepted, at, reach, ground, strength); break;
      case NodeLook::rejected: draw_fate_badge(list_, NodeFate::rejected, at, reach, ground, strength); break;
      case NodeLook::bonus: draw_fate_badge(list_, NodeFate::bonus, at, reach, ground, strength); break;
      case NodeLook::not_reached: dot({at.x + units(3), at.y}, faded(colours().unreached, strength)); break;
    }
  }

  ImDrawList* list_;
  const TreePaint& p_;
  const TreeGeometry& g_;
  float scale_;  // pixels for each unit of the design, for what grows with the zoom
};

/// A return sign as high as a small letter: a line down, one to the left, and the head of an arrow.
void draw_return(ImDrawList* list, ImVec2 left_middle, float width, float size, Colour colour) {
  const float right = left_middle.x + width * 0.8f, left = left_middle.x + width * 0.06f;
  const float top = left_middle.y - size * 0.2f, y = left_middle.y + size * 0.1f, head = width * 0.3f;
  const float stroke = std::max(1.0f, size * 0.075f);
  list->PathLineTo({right, top});
  list->PathLineTo({right, y});
  list->PathLineTo({left, y});
  list->PathStroke(colour, stroke);
  list->PathLineTo({left + head, y - head});
  list->PathLineTo({left, y});
  list->PathLineTo({left + head, y + head});
  list->PathStroke(colour, stroke);
}

}  // namespace

void draw_word(ImDrawList* list, ImVec2 left_middle, Type type, float size, Colour colour, const std::string& label,
               float room) {
  const float cell = text_size(type, "0").x * size / text_height(type);
  const size_t fits = static_cast<size_t>(std::max(1.0f, std::floor(room / cell + 0.2f)));
  const std::string words = characters(label) <= fits ? label : shortened(label, fits);
  std::string_view rest = words;
  float x = left_middle.x;
  while (!rest.empty()) {
    if (rest.starts_with(kReturnSign)) {
      draw_return(list, {x, left_middle.y}, cell, size, colour);
      x += cell;
      rest.remove_prefix(kReturnSign.size());
      continue;
    }
    const std::string_view run = rest.substr(0, rest.find(kReturnSign));
    list->AddText(font_of(type), size, {std::floor(x), std::floor(left_middle.y - size * 0.5f)}, colour, run.data(),
                  run.data() + run.size());
    x += text_size(type, run).x * size / text_height(type);
    rest.remove_prefix(run.size());
  }
}

void draw_fate_badge(ImDrawList* list, NodeFate fate, ImVec2 centre, float reach, Colour ground, float strength) {
  const Colour colour = faded(fate_colour(colours(), fate), strength);
  switch (fate) {
    case NodeFate::root: break;
    case NodeFate::accepted:
      list->AddCircleFilled(centre, reach + units(1), faded(ground, strength));
      draw_check_disc(list, centre, reach, colour, faded(colours().on_state, strength));
      break;
    case NodeFate::rejected:
      list->AddCircleFilled(centre, reach, faded(ground, strength));
      draw_cross(list, centre, reach * 0.58f, colour, reach * 0.36f);
      break;
    case NodeFate::not_reached: list->AddCircleFilled(centre, std::max(units(1.8f), reach * 0.42f), colour); break;
    case NodeFate::bonus:
      list->AddCircleFilled(centre, reach * 1.1f, faded(ground, strength));
      draw_star(list, centre, reach * 1.35f, colour);
      break;
  }
}

void draw_words(ImDrawList* list, const TreePaint& paint) {
  Words(list, paint).draw();
}

void draw_ring(ImDrawList* list, const TreePaint& paint, uint32_t node) {
  const TreeGeometry& g = paint.geometry;
  const NodeBox& box = g.nodes[node];
  if (paint.strength(node) <= 0) return;
  const Theme& t = colours();
  if (!box.named) {
    list->AddCircle(paint.at(box.x + units(14), box.y), units(18), t.text, 0, units(1.5f));
    return;
  }
  const float half = g.pill_height * 0.5f + units(3);
  const float badge = paint.look_of(node) == NodeLook::root ? 0 : units(tree_design::badge) * g.text_scale;
  list->AddRect(paint.at(box.x - badge - units(3), box.y - half), paint.at(box.x + box.width + units(3), box.y + half),
                t.text, units(6), units(1.5f));
}

void draw_chain_note(ImDrawList* list, const TreePaint& paint, const ChainEstimate& chain, size_t emitted) {
  if (!paint.geometry.chain_note) return;
  const Theme& t = colours();
  const TreeRect& r = *paint.geometry.chain_note;
  const ImVec2 at = paint.at(r.x0, r.y0);
  const auto lines = chain_note_lines(chain, emitted);
  for (size_t i = 0; i < lines.size(); ++i)
    draw_text(list, {at.x, at.y + px(16) * static_cast<float>(i)}, Type::caption, i == 0 ? t.text2 : t.text3, lines[i]);
}

}  // namespace canopy::app
