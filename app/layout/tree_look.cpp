#include "app/layout/tree_look.h"

#include <array>

namespace canopy::app {

NodeLook look_of(const TreeModel& tree, const TreeReveal& reveal, uint32_t node) {
  const NodeFate fate = tree.nodes[node].fate;
  if (fate == NodeFate::root) return NodeLook::root;
  if (fate == NodeFate::bonus) return NodeLook::bonus;
  if (!reveal.nodes[node].judged) return NodeLook::undecided;
  if (fate == NodeFate::accepted) return NodeLook::accepted;
  return fate == NodeFate::rejected ? NodeLook::rejected : NodeLook::not_reached;
}

NodeLook look_of(const TreeReveal& reveal, const Tuft& tuft) {
  if (!reveal.nodes[tuft.heads.front()].judged) return NodeLook::undecided;
  return tuft.rejected ? NodeLook::rejected : NodeLook::not_reached;
}

float strength_of(const TreeReveal& reveal, uint32_t node) {
  return reveal.nodes[node].shown * reveal.nodes[node].strength;
}

float share_shown(const TreeReveal& reveal, const Tuft& tuft) {
  // The nodes of a tuft are added one after the other, its heads among them.
  float sum = 0;
  for (const uint32_t head : tuft.heads) sum += reveal.nodes[head].shown;
  return sum / static_cast<float>(tuft.heads.size());
}

float pill_width(const TreeGeometry& geometry, const TreeReveal& reveal, uint32_t node) {
  const NodeBox& box = geometry.nodes[node];
  return reveal.nodes[node].judged && reveal.nodes[node].lit >= 1 ? box.width : box.width - box.figure;
}

Colour limb_colour(const Theme& t, NodeLook look, bool hollow) {
  switch (look) {
    case NodeLook::accepted: return t.accepted;
    case NodeLook::bonus: return t.bonus;
    case NodeLook::rejected: return hollow ? t.limb_rejected_bg : t.limb_rejected;
    case NodeLook::not_reached: return t.limb_unreached;
    default: return t.limb;
  }
}

Colour twig_end_colour(const Theme& t, NodeLook look) {
  const bool decided_against = look == NodeLook::rejected || look == NodeLook::not_reached;
  return decided_against ? t.unreached : mix(t.limb, t.text3, 0.5f);
}

Colour word_colour(const Theme& t, NodeLook look) {
  switch (look) {
    case NodeLook::root:
    case NodeLook::accepted: return t.text;
    case NodeLook::undecided: return t.text2;
    case NodeLook::rejected: return t.rejected_text;
    case NodeLook::bonus: return t.bonus_text;
    default: return t.text3;
  }
}

Colour fate_colour(const Theme& t, NodeFate fate) {
  const std::array<Colour, kFates> table = {t.text, t.accepted, t.rejected, t.unreached, t.bonus};
  return table[static_cast<size_t>(fate)];
}

Colour fate_text_colour(const Theme& t, NodeFate fate) {
  const std::array<Colour, kFates> table = {t.text, t.accepted_text, t.rejected_text, t.text3, t.bonus_text};
  return table[static_cast<size_t>(fate)];
}

}  // namespace canopy::app
