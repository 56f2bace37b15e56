#include "app/tree/tree_paint.h"

#include <imgui_internal.h>

#include <array>
#include <cmath>

#include "app/tree/tree_model.h"
#include "app/ui/script_text.h"

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
    if (is_found(p_.tree, tuft))
      draw_found_corner(list_, p_.at(box.label_x + box.label_width, box.y - units(6)),
                        found_corner(g_.pill_height, look().scale), faded(found_colour(t, p_.look_of(tuft)), strength));
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
    const float round = pill_round(p_.tree.nodes[node], g_.pill_height);
    frame(now, a, b, round, strength, node == p_.hovered || node == p_.selected);
    if (p_.reveal.verified > 0 && look != NodeLook::root) {
      // While the target checks the tree all words have the same frame, as they go through one pass.
      list_->AddRect(a, b, faded(colours().accent, p_.reveal.verified * strength), round, units(1.5f));
    }
    if (is_found(p_.tree.nodes[node])) {
      const float top = now == NodeLook::not_reached ? a.y + units(2) : a.y;  // of its ground, which has no frame
      draw_found_corner(list_, {b.x, top}, found_corner(g_.pill_height, scale_),
                        faded(found_colour(colours(), now), strength));
    }
    const bool strong = now == NodeLook::accepted || now == NodeLook::bonus || now == NodeLook::root;
    const float left = now == NodeLook::root ? 10 : look == NodeLook::bonus ? 14 : pad_left;
    draw_word(list_, p_.at(box.x + left * scale_, box.y), strong ? Type::mono_semibold : Type::mono,
              text_height(Type::mono, g_.text) * g_.text_scale,
              faded(word_colour(colours(), p_.tree.nodes[node], now), strength), p_.labels[node], box.label_room);
    if (g_.figures && (now == NodeLook::accepted || now == NodeLook::rejected))
      figure(p_.tree.nodes[node].q, now, b, strength);
    badge(now, p_.at(box.x, box.y), round == 0, strength);
  }

  void frame(NodeLook look, ImVec2 a, ImVec2 b, float round, float strength, bool marked) {
    const Theme& t = colours();
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

  /// Square where the pill would be. In the widest trees all are, as in tufts, which costs a fifth of the vertices.
  void dot(ImVec2 at, bool square, Colour colour) {
    if (p_.tree.size() < kManyNodes && !square)
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

  void badge(NodeLook look, ImVec2 at, bool square, float strength) {
    const float reach = std::min(tree_design::badge * scale_, g_.pill_height * 0.42f);
    const Colour ground = colours().canvas;
    switch (look) {
      case NodeLook::root: break;
      case NodeLook::undecided: break;
      case NodeLook::accepted: draw_fate_badge(list_, NodeFate::accepted, at, reach, ground, strength); break;
      case NodeLook::rejected: draw_fate_badge(list_, NodeFate::rejected, at, reach, ground, strength); break;
      case NodeLook::bonus: draw_fate_badge(list_, NodeFate::bonus, at, reach, ground, strength); break;
      case NodeLook::not_reached: dot({at.x + units(3), at.y}, square, faded(colours().unreached, strength)); break;
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
  // Letters of other scripts are not one cell wide.
  const float unscaled = text_height(type) / size;
  const bool whole = text_size(type, label).x <= (room + cell * 0.2f) * unscaled;
  const bool cells = text_size(type, label).x <= static_cast<float>(characters(label)) * cell * unscaled + 0.5f;
  const std::string words = whole ? label : cells ? shortened(label, fits) : elided(type, label, room * unscaled);
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
    draw_line(list, {std::floor(x), std::floor(left_middle.y - size * 0.5f)}, {font_of(type), size}, colour, run);
    x += text_size(type, run).x * size / text_height(type);
    rest.remove_prefix(run.size());
  }
}

void draw_found_corner(ImDrawList* list, ImVec2 corner, float side, Colour colour) {
  list->AddTriangleFilled({corner.x - side, corner.y}, corner, {corner.x, corner.y + side}, colour);
}

void draw_found_sign(ImDrawList* list, ImVec2 centre, float reach, Colour colour) {
  const ImVec2 a = {centre.x - reach, centre.y - reach * 0.75f}, b = {centre.x + reach, centre.y + reach * 0.75f};
  list->AddRect(a, b, colour, 0, units(1.2f));
  draw_found_corner(list, {b.x, a.y}, reach, colour);
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
  const auto lines = chain_note_lines(chain, emitted, paint.tree.sources);
  for (size_t i = 0; i < lines.size(); ++i)
    draw_text(list, {at.x, at.y + px(16) * static_cast<float>(i)}, Type::caption, i == 0 ? t.text2 : t.text3, lines[i]);
}

}  // namespace canopy::app
