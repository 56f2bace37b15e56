#include "app/layout/limb_shapes.h"

#include <algorithm>
#include <cmath>

namespace canopy::app {

Ribbon limb_ribbon(const TreeModel& tree, const TreeGeometry& geometry, const Limb& limb, float parent_width,
                   float width, float scale) {
  const NodeBox& from = geometry.nodes[limb.parent];
  TreePoint end;
  if (limb.to_tuft)
    end = {geometry.tufts[limb.child].x, geometry.tufts[limb.child].y};
  else
    end = {geometry.nodes[limb.child].x + 2 * scale, geometry.nodes[limb.child].y};
  const float begin = from.x + parent_width - scale;
  const float column = geometry.column_end(tree.nodes[limb.parent].depth);
  const float turn = std::max(begin, std::min(column, end.x - 24 * scale));
  return {begin, {turn, from.y + limb.offset}, end, limb.begin * width, limb.end * width};
}

TwigBundle twigs_of(const Tuft& tuft, const TuftBox& box, float scale) {
  const float count = static_cast<float>(box.twigs);
  TwigBundle bundle;
  bundle.from = {box.x - 1, box.y};
  bundle.wood = std::max(0.8f * scale, (1.4f - count * 0.012f) * scale);
  bundle.dot = (box.twigs > 20 ? 1.35f : 1.7f) * scale;
  // One twig of each so many ends in a head, as deeper nodes are more.
  const uint32_t each = std::max(
      1u, static_cast<uint32_t>(static_cast<float>(tuft.nodes) / static_cast<float>(tuft.heads.size()) + 0.5f));
  for (uint32_t i = 0; i < box.twigs; ++i) {
    const float side = box.twigs == 1 ? 0 : 2 * static_cast<float>(i) / (count - 1) - 1;
    const float golden = std::fmod(static_cast<float>(i) * 0.618034f, 1.0f);
    const float length = box.length * (0.62f + 0.38f * golden) * (1 - 0.18f * side * side);
    const TreePoint from = bundle.from, end = {from.x + length, from.y + side * box.reach};
    bundle.twigs.push_back({end, {from.x + length * 0.4f, from.y}, {end.x - length * 0.45f, end.y}, i % each == 0});
  }
  return bundle;
}

}  // namespace canopy::app
