#include <algorithm>
#include <array>
#include <cmath>

#include "app/layout/tree_transition.h"
#include "app/tree/tree_paint.h"

namespace canopy::app {
namespace {

constexpr float kSoftEnd = 12;  // over which the glow fades at the ends of a limb

Colour limb_colour_of(NodeLook look, float thickness) {
  return limb_colour(colours(), look, thickness >= units(kHollowFrom));
}

class Limbs {
 public:
  Limbs(ImDrawList* list, const TreePaint& paint) : list_(list), p_(paint), g_(paint.geometry) {}

  void draw(NodeLook look) {
    for (const Limb& limb : g_.limbs) {
      if (look_of(limb) != look || shown(limb) <= 0 || limb.child == open_of(limb)) continue;
      if (look == NodeLook::bonus)
        dotted(limb);
      else
        fill(limb, look);
    }
  }

  void glow() {
    // How far each layer reaches, and its strength beside the limb: together as bright as the design's three widths of
    // even strength (+5, +11, +18), without their edges.
    constexpr std::array<std::pair<float, float>, 3> kGlow = {{{9, .11f}, {5.5f, .1f}, {2.5f, .08f}}};
    for (const Limb& limb : g_.limbs) {
      const float lit = lit_of(limb);
      if (look_of(limb) != NodeLook::accepted || lit <= 0) continue;
      for (const auto& [reach, alpha] : kGlow)
        glow_ribbon(list_, ribbon_of(limb, 1), faded(colours().accepted, alpha * strength(limb)), units(reach),
                    units(kSoftEnd), lit);
    }
  }

  /// Draws the way from the root to a node in a lighter colour.
  void way_to(uint32_t node) {
    while (node != 0) {
      for (const Limb& limb : g_.limbs) {
        if (limb.to_tuft ? !in_tuft(limb.child, node) : limb.child != node) continue;
        const NodeLook look = look_of(limb);
        if (shown(limb) <= 0 || look == NodeLook::bonus) continue;
        fill_ribbon(list_, ribbon_of(limb, 1), mix(limb_colour_of(look, limb.end), colours().text, 0.45f));
      }
      node = p_.tree.nodes[node].parent;
    }
  }

  void tufts() {
    for (uint32_t i = 0; i < g_.tufts.size(); ++i)
      if (p_.open_tuft != i && p_.shown(g_.words.tufts[i]) > 0) twigs(g_.words.tufts[i], g_.tufts[i]);
  }

 private:
  uint32_t open_of(const Limb& limb) const { return limb.to_tuft && p_.open_tuft ? *p_.open_tuft : ~0u; }
  bool in_tuft(uint32_t tuft, uint32_t node) const {
    const auto& heads = g_.words.tufts[tuft].heads;
    return std::find(heads.begin(), heads.end(), node) != heads.end();
  }
  NodeLook look_of(const Limb& limb) const {
    return limb.to_tuft ? p_.look_of(g_.words.tufts[limb.child]) : p_.look_of(limb.child);
  }
  float shown(const Limb& limb) const {
    return limb.to_tuft ? p_.shown(g_.words.tufts[limb.child]) : p_.reveal.nodes[limb.child].shown;
  }
  uint32_t head_of(const Limb& limb) const {
    return limb.to_tuft ? g_.words.tufts[limb.child].heads.front() : limb.child;
  }
  float strength(const Limb& limb) const { return p_.reveal.nodes[head_of(limb)].strength; }
  float lit_of(const Limb& limb) const { return limb.to_tuft ? 0 : p_.reveal.nodes[limb.child].lit; }

  Ribbon ribbon_of(const Limb& limb, float width) const {
    Ribbon ribbon = limb_ribbon(p_.tree, g_, limb, p_.width_of(limb.parent), width, units(1));
    ribbon.from += p_.origin.x;
    for (TreePoint* end : {&ribbon.p, &ribbon.q}) *end = {end->x + p_.origin.x, end->y + p_.origin.y};
    // Hundreds of limbs are not looked at one by one.
    if (p_.tree.size() >= kManyNodes) ribbon.tolerance *= 2.5f;
    return ribbon;
  }

  void fill(const Limb& limb, NodeLook look) {
    const float grown = limb.to_tuft ? std::min(1.0f, shown(limb) * 4) : ease_out(shown(limb));
    const float width = p_.reveal.nodes[head_of(limb)].width;
    const Ribbon ribbon = ribbon_of(limb, width);
    const float top = std::min(ribbon.p.y, ribbon.q.y) - limb.end, bottom = std::max(ribbon.p.y, ribbon.q.y) + limb.end;
    if (!p_.visible(ribbon.from - p_.origin.x, top - p_.origin.y, ribbon.q.x - p_.origin.x, bottom - p_.origin.y))
      return;
    const float thick = std::max(limb.begin, limb.end);
    if (look == NodeLook::accepted && lit_of(limb) < 1)
      fill_ribbon(list_, ribbon, faded(colours().limb, strength(limb)), grown);
    const float reached = look == NodeLook::accepted ? lit_of(limb) : grown;
    fill_ribbon(list_, ribbon, faded(limb_colour_of(look, thick), strength(limb)), reached);
    if (look == NodeLook::rejected && thick >= units(kHollowFrom))
      outline_ribbon(list_, ribbon, faded(colours().rejected, 0.75f * strength(limb)), reached);
  }

  /// The bonus was not drafted, so its limb is a row of dots.
  void dotted(const Limb& limb) {
    const Ribbon r = ribbon_of(limb, 1);
    const float half = (r.p.x + r.q.x) * 0.5f;
    const Colour colour = faded(colours().bonus, p_.strength(limb.child));
    const std::array<ImVec2, 2> straight = {ImVec2(r.from + units(3), r.p.y), ImVec2(r.p.x, r.p.y)};
    const Dash dots = {units(2), units(3)};
    if (straight[1].x > straight[0].x) add_dashed(list_, straight, dots, colour, units(2.2f));
    add_dashed_bezier(list_, straight[1], {half, r.p.y}, {half, r.q.y}, {r.q.x - units(8), r.q.y}, dots, colour,
                      units(2.2f));
  }

  void twigs(const Tuft& tuft, const TuftBox& box) {
    if (!p_.visible(box.x, box.y - box.reach, box.label_x + box.label_width, box.y + box.reach)) return;
    const Theme& t = colours();
    const NodeLook look = p_.look_of(tuft);
    const float strength = p_.reveal.nodes[tuft.heads.front()].strength;
    const Colour wood = faded(limb_colour_of(look, 0), strength);
    const Colour tip = faded(twig_end_colour(t, look), strength);
    const TwigBundle bundle = twigs_of(tuft, box, units(1));
    const auto there = static_cast<uint32_t>(std::ceil(static_cast<float>(box.twigs) * p_.shown(tuft)));
    const auto at = [&](TreePoint point) { return p_.at(point.x, point.y); };
    const int pieces = p_.tree.size() < kManyNodes ? 3 : 2;
    for (uint32_t i = 0; i < there; ++i) {
      const Twig& twig = bundle.twigs[i];
      list_->PathLineTo(at(bundle.from));
      list_->PathBezierCubicCurveTo(at(twig.leave), at(twig.arrive), at(twig.end), pieces);
      list_->PathStroke(wood, bundle.wood);
      const bool head = look == NodeLook::rejected && twig.head;
      // A short thick line: at this size it looks like a disc and costs a third of its vertices.
      const ImVec2 end = at(twig.end);
      list_->AddLine({end.x - bundle.dot, end.y}, {end.x + bundle.dot, end.y}, head ? faded(t.rejected, strength) : tip,
                     2 * bundle.dot);
    }
    if (there > 0) label(tuft, box, strength);
  }

  void label(const Tuft& tuft, const TuftBox& box, float strength) {
    const Theme& t = colours();
    const ImVec2 at = p_.at(box.label_x, box.y);
    if (tuft.nodes == 1) {
      const float size = text_height(Type::mono, g_.text) * g_.text_scale;
      draw_word(list_, at, Type::mono, size, faded(t.text3, strength), p_.labels[tuft.heads.front()], box.label_width);
      return;
    }
    const std::string count = "+" + std::to_string(tuft.nodes), mass = " \u00b7 " + percentage(tuft.mass);
    draw_text_middle(list_, at.x, at.y, Type::mono_caption, faded(t.text2, strength), count);
    draw_text_middle(list_, at.x + text_size(Type::mono_caption, count).x, at.y, Type::mono_caption,
                     faded(t.text3, strength), mass);
  }

  ImDrawList* list_;
  const TreePaint& p_;
  const TreeGeometry& g_;
};

}  // namespace

void draw_limbs(ImDrawList* list, const TreePaint& paint) {
  Limbs limbs(list, paint);
  for (const NodeLook look : {NodeLook::not_reached, NodeLook::undecided, NodeLook::rejected}) limbs.draw(look);
  limbs.tufts();
  limbs.glow();
  limbs.draw(NodeLook::accepted);
  limbs.draw(NodeLook::bonus);
  if (paint.selected) limbs.way_to(*paint.selected);
  if (paint.hovered && paint.hovered != paint.selected) limbs.way_to(*paint.hovered);
}

}  // namespace canopy::app
