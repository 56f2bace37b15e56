#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "app/look/icons.h"
#include "app/tree/token_label.h"
#include "app/tree/tree_paint.h"

namespace canopy::app {
namespace {

using namespace tree_design;

/// ".41": a probability with two decimals, as shown in the tree.
std::string short_probability(double q) {
  char text[16];
  std::snprintf(text, sizeof text, "%.2f", q);
  return q < 0.995 ? std::string(text + 1) : std::string("1.0");
}

class Nodes {
 public:
  Nodes(ImDrawList* list, const TreePaint& paint)
      : list_(list),
        p_(paint),
        g_(paint.geometry),
        scale_(g_.node_scale),
        cell_(text_size(Type::mono, "0").x * scale_) {}

  void draw() {
    for (uint32_t node = 0; node < p_.tree.size(); ++node) {
      const NodeBox& box = g_.nodes[node];
      const float reach = units(24);
      if (box.folded || p_.strength(node) <= 0) continue;
      if (!p_.visible(box.x - reach, box.y - reach, box.x + box.width + reach, box.y + reach)) continue;
      if (has_pills(g_.detail))
        pill(node, box);
      else
        dot(node, box);
    }
    for (const LabelBox& label : g_.labels) label_below(label);
    for (size_t i = 0; i < g_.wedges.size(); ++i) wedge(g_.wedges[i], g_.wedge_boxes[i]);
  }

  void label_below(const LabelBox& label) {
    if (p_.strength(label.node) <= 0) return;
    const Theme& t = colours();
    const ImVec2 a = p_.at(label.rect.x0 - units(1), label.rect.y0), b = p_.at(label.rect.x1 + units(1), label.rect.y1);
    list_->AddRectFilled(a, b, faded(t.canvas, 0.86f), units(2));
    const NodeFate fate = p_.shown_fate(label.node);
    const Colour colour = fate == NodeFate::bonus ? t.bonus_text : fate == NodeFate::not_reached ? t.text3 : t.text;
    const float room = label.rect.x1 - label.rect.x0 - units(4);
    text(p_.labels[label.node], label.rect.x0 + units(2), (label.rect.y0 + label.rect.y1) * 0.5f, room, true,
         faded(colour, p_.strength(label.node)));
  }

 private:
  float grown(float length) const { return units(length) * scale_; }

  /// Draws text on the canvas, its middle at height y, cut to `room` pixels.
  void text(const std::string& label, float x, float y, float room, bool strong, Colour colour) {
    const Type type = strong ? Type::mono_semibold : Type::mono;
    const float size = text_height(type) * scale_;
    const ImVec2 at = p_.at(x, y - size * 0.5f);
    const auto put = [&](const std::string& words) {
      list_->AddText(font_of(type), size, {std::floor(at.x), std::floor(at.y)}, colour, words.data(),
                     words.data() + words.size());
    };
    const size_t fits = static_cast<size_t>(std::max(1.0f, std::floor(room / cell_ + 0.2f)));
    if (characters(label) <= fits)
      put(label);
    else
      put(shortened(label, fits));
  }

  void pill(uint32_t node, const NodeBox& box) {
    const NodeFate fate = p_.shown_fate(node);
    const float strength = p_.strength(node), half = g_.pill_height * 0.5f, round = g_.pill_height * 0.28f;
    const ImVec2 a = p_.at(box.x, box.y - half), b = p_.at(box.x + box.width, box.y + half);
    frame(fate, a, b, round, strength, node == p_.hovered || node == p_.selected);
    if (p_.reveal.verified > 0 && fate != NodeFate::root) {
      // During the verify phase all nodes get their frame at the same time, as they go through one pass.
      list_->AddRect(a, b, faded(colours().accent, p_.reveal.verified), round, units(1.5f));
    }
    const TreeNodeView& view = p_.tree.nodes[node];
    const bool drafted = view.fate != NodeFate::root && view.fate != NodeFate::bonus;
    const bool bar = drafted && g_.pill_height >= units(12);
    const bool strong = fate != NodeFate::rejected && fate != NodeFate::not_reached;
    const float x = box.x + grown(pad_left);
    text(p_.labels[node], x, box.y - (bar ? grown(1.8f) : 0), box.label_room, strong,
         faded(label_colour(fate), strength));
    if (bar) bar_of_q(view.q, fate, x, box, strength);
    if (drafted) figure_of_q(view.q, fate, box, strength);
    const Colour ground = colours().canvas;
    const float reach = std::min(grown(badge), g_.pill_height * 0.42f);
    const float shift = fate == NodeFate::not_reached ? reach * 0.35f : 0;
    draw_fate_badge(list_, fate, p_.at(box.x + shift, box.y), reach, ground, strength);
  }

  static Colour label_colour(NodeFate fate) {
    return fate == NodeFate::accepted ? colours().text : fate_text_colour(fate);
  }

  void frame(NodeFate fate, ImVec2 a, ImVec2 b, float round, float strength, bool marked) {
    const Theme& t = colours();
    const auto fill = [&](Colour colour) { list_->AddRectFilled(a, b, faded(colour, strength), round); };
    switch (fate) {
      case NodeFate::root:
        fill(t.raised);
        list_->AddRect(a, b, faded(t.text2, strength), round, units(1.5f));
        break;
      case NodeFate::accepted:
        fill(t.accepted_bg);
        list_->AddRect(a, b, faded(t.accepted, strength), round, units(1.5f));
        break;
      case NodeFate::rejected:
        fill(marked ? t.rejected_bg : t.canvas);
        add_dashed_rect(list_, a, b, round, rejected_dash(), faded(t.rejected, strength), units(1.2f));
        break;
      case NodeFate::bonus:
        fill(t.bonus_bg);
        add_dashed_rect(list_, a, b, round, bonus_dash(), faded(t.bonus, strength), units(1.5f));
        break;
      case NodeFate::not_reached:
        if (marked) fill(t.raised);
        break;
    }
  }

  void bar_of_q(double q, NodeFate fate, float x, const NodeBox& box, float strength) {
    const float height = std::max(1.5f, grown(2)), y = box.y + g_.pill_height * 0.5f - height - g_.pill_height * 0.12f;
    const ImVec2 a = p_.at(x, y);
    const float whole = std::max(box.label_room, units(6));
    const float part = std::max(units(1.5f), whole * static_cast<float>(q));
    list_->AddRectFilled(a, {a.x + whole, a.y + height}, faded(colours().line, strength));
    list_->AddRectFilled(a, {a.x + part, a.y + height}, faded(fate_colour(fate), strength));
  }

  /// Draws q inside the node; at the level `figures` below it, for accepted nodes centred and for rejected ones at the
  /// right.
  void figure_of_q(double q, NodeFate fate, const NodeBox& box, float strength) {
    if (g_.detail < Detail::figures) return;
    const std::string figure = g_.detail == Detail::full ? short_probability(q) : "0" + short_probability(q);
    const std::string words = figure == "01.0" ? "1.00" : figure;
    const float size = text_height(Type::mono_caption) * (g_.detail == Detail::full ? scale_ : 1);
    const float width = text_size(Type::mono_caption, words).x * size / text_height(Type::mono_caption);
    float x = box.x + box.width - grown(pad_right) - width, y = box.y - size * 0.5f - grown(1);
    Colour colour = fate == NodeFate::not_reached ? colours().text3 : colours().text2;
    if (g_.detail == Detail::figures) {
      if (fate != NodeFate::accepted && fate != NodeFate::rejected) return;
      if (fate == NodeFate::accepted) x = box.x + (box.width - width) * 0.5f;
      y = box.y + g_.pill_height * 0.5f + units(0.5f);
      if (fate == NodeFate::accepted) colour = colours().accepted_text;
    }
    const ImVec2 at = p_.at(x, y);
    list_->AddText(font_of(Type::mono_caption), size, {std::floor(at.x), std::floor(at.y)}, faded(colour, strength),
                   words.data(), words.data() + words.size());
  }

  void dot(uint32_t node, const NodeBox& box) {
    const NodeFate fate = p_.shown_fate(node);
    const float strength = p_.strength(node);
    const ImVec2 at = p_.at(box);
    const bool small = g_.detail == Detail::dots;
    if (p_.reveal.verified > 0 && fate != NodeFate::root)
      list_->AddCircleFilled(at, units(small ? 2.5f : 4), faded(colours().accent, p_.reveal.verified), 8);
    switch (fate) {
      case NodeFate::not_reached: {
        const float reach = units(small ? 1.2f : 2);
        const Colour colour = faded(colours().unreached, strength);
        if (small)
          list_->AddRectFilled({at.x - reach, at.y - reach}, {at.x + reach, at.y + reach}, colour);
        else
          list_->AddCircleFilled(at, reach, colour, 8);
        break;
      }
      case NodeFate::root: list_->AddCircleFilled(at, units(5), faded(colours().text, strength)); break;
      case NodeFate::rejected:
        if (small)
          draw_cross(list_, at, units(2), faded(colours().rejected, strength), std::max(1.0f, std::floor(units(1))));
        else
          draw_fate_badge(list_, fate, at, units(4.5f), colours().canvas, strength);
        break;
      case NodeFate::accepted: draw_fate_badge(list_, fate, at, units(5), colours().canvas, strength); break;
      case NodeFate::bonus: draw_fate_badge(list_, fate, at, units(6), colours().canvas, strength); break;
    }
  }

  void wedge(const TreeWedge& wedge, const WedgeBox& box) {
    const Theme& t = colours();
    const ImVec2 tip = p_.at(box.tip.x, box.tip.y);
    list_->AddTriangleFilled(tip, {tip.x + box.width, tip.y - box.reach}, {tip.x + box.width, tip.y + box.reach},
                             t.unreached);
    draw_fate_badge(list_, NodeFate::rejected, {tip.x - units(2), tip.y}, units(4.5f), t.canvas);
    if (!box.labelled) return;
    const std::string nodes = "+" + std::to_string(wedge.nodes), sum = "\u03a3q " + short_probability(wedge.q);
    const ImVec2 at = p_.at(box.label.x0, box.tip.y);
    const float line = units(13);
    draw_text(list_, {at.x, at.y - line}, Type::mono_caption, t.text, nodes);
    draw_text(list_, {at.x, at.y}, Type::mono_caption, t.text3, sum);
  }

  ImDrawList* list_;
  const TreePaint& p_;
  const TreeGeometry& g_;
  float scale_;
  float cell_;  // width of a character
};

}  // namespace

Colour fate_colour(NodeFate fate) {
  const Theme& t = colours();
  const std::array<Colour, kFates> table = {t.text, t.accepted, t.rejected, t.unreached, t.bonus};
  return table[static_cast<size_t>(fate)];
}

Colour fate_text_colour(NodeFate fate) {
  const Theme& t = colours();
  const std::array<Colour, kFates> table = {t.text, t.accepted_text, t.rejected_text, t.text3, t.bonus_text};
  return table[static_cast<size_t>(fate)];
}

void draw_fate_badge(ImDrawList* list, NodeFate fate, ImVec2 centre, float reach, Colour ground, float strength) {
  const Colour colour = faded(fate_colour(fate), strength);
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

void draw_nodes(ImDrawList* list, const TreePaint& paint) {
  Nodes(list, paint).draw();
}

void draw_ring(ImDrawList* list, const TreePaint& paint, uint32_t node) {
  const NodeBox& box = paint.geometry.nodes[node];
  if (box.folded || paint.strength(node) <= 0) return;
  const Theme& t = colours();
  if (has_pills(paint.geometry.detail)) {
    const float half = paint.geometry.pill_height * 0.5f + units(3);
    const float badge =
        paint.shown_fate(node) == NodeFate::root ? 0 : units(tree_design::badge) * paint.geometry.node_scale;
    list->AddRect(paint.at(box.x - badge - units(3), box.y - half),
                  paint.at(box.x + box.width + units(3), box.y + half), t.text, units(6), units(1.5f));
    return;
  }
  list->AddCircle(paint.at(box), units(8), t.text, 0, units(1.5f));
  for (const LabelBox& label : paint.geometry.labels)
    if (label.node == node) return;
  const float width = text_size(Type::mono, paint.labels[node]).x * paint.geometry.node_scale;
  const float left = std::clamp(box.x - width * 0.5f, units(4), std::max(units(4), paint.size.x - width - units(8)));
  Nodes(list, paint)
      .label_below({node, {left - units(2), box.y + units(9), left + width + units(2), box.y + units(25)}});
}

}  // namespace canopy::app
