#include "app/tree/limb_shapes.h"

#include <algorithm>
#include <cmath>

namespace canopy::app {
namespace {

constexpr uint32_t kFine = 32;  // steps in which the bend of a curve is added up
constexpr float kFaint = 2;     // thickness in pixels below which twice of that is not seen either

float length_of(TreePoint v) {
  return std::sqrt(v.x * v.x + v.y * v.y);
}

/// Level ends and controls at half make both coordinates simple: y eases, x is nearly even.
float along_x(float u) {
  return u * (1.5f - 1.5f * u + u * u);
}
float eased(float u) {
  return u * u * (3 - 2 * u);
}
/// The derivative, for a curve that rises by `rise`.
TreePoint direction(const Ribbon& ribbon, float rise, float u) {
  return {(ribbon.q.x - ribbon.p.x) * (1.5f - 3 * u + 3 * u * u), rise * 6 * u * (1 - u)};
}

/// The pieces that each part of a curve wants: [i] for u up to fine_u(i). The edge of a piece that turns by an angle a
/// over a length s is s a / 8 off its curve, with s that of the outer edge, which is longer by half the thickness times
/// a; so the number of pieces is the sum of the roots.
using Wanted = std::array<float, kFine + 1>;

float fine_u(uint32_t i) {
  return eased(static_cast<float>(i) / kFine);  // finer at the ends, where the curve turns
}

Wanted wanted_pieces(const Ribbon& ribbon) {
  const float thick = std::max(ribbon.begin, ribbon.end),
              off = thick < kFaint ? ribbon.tolerance * 2 : ribbon.tolerance;
  // The farther edge of a ribbon that grows thicker on its way bends by that more.
  const float rise = std::abs(ribbon.q.y - ribbon.p.y) + std::abs(ribbon.end - ribbon.begin) * 0.5f;
  Wanted wanted{};
  TreePoint at = {0, 0}, to = {1, 0};
  for (uint32_t i = 1; i <= kFine; ++i) {
    const float u = fine_u(i);
    TreePoint next = direction(ribbon, rise, u);
    const float speed = std::max(length_of(next), 1e-4f);
    next = {next.x / speed, next.y / speed};
    const TreePoint there = {(ribbon.q.x - ribbon.p.x) * along_x(u), rise * eased(u)};
    const float angle = std::abs(to.x * next.y - to.y * next.x), s = length_of({there.x - at.x, there.y - at.y});
    wanted[i] = wanted[i - 1] + std::sqrt(angle * (s + thick * 0.5f * angle) / (8 * off));
    at = there;
    to = next;
  }
  return wanted;
}

SpinePoint between(const SpinePoint& a, const SpinePoint& b, float t) {
  const auto mid = [t](float x, float y) { return x + (y - x) * t; };
  return {{mid(a.at.x, b.at.x), mid(a.at.y, b.at.y)},
          {mid(a.across.x, b.across.x), mid(a.across.y, b.across.y)},
          mid(a.half, b.half),
          mid(a.alpha, b.alpha)};
}

void add_curve(Spine& spine, const Ribbon& ribbon) {
  // A level limb of one thickness goes on from the piece before it.
  const bool level = std::abs(ribbon.p.y - ribbon.q.y) < 0.5f && std::abs(ribbon.begin - ribbon.end) < 1;
  if (!level || spine.count == 0) spine.point[spine.count++] = on_curve(ribbon, 0);
  if (!level) {
    const Wanted wanted = wanted_pieces(ribbon);
    const uint32_t pieces = std::clamp(static_cast<uint32_t>(std::ceil(wanted[kFine])), 2u, Spine::most_pieces);
    uint32_t part = 0;
    for (uint32_t i = 1; i < pieces; ++i) {
      const float sum = wanted[kFine] * static_cast<float>(i) / static_cast<float>(pieces);
      while (part + 2 <= kFine && wanted[part + 1] < sum) ++part;
      const float t = (sum - wanted[part]) / std::max(wanted[part + 1] - wanted[part], 1e-6f);
      spine.point[spine.count++] = on_curve(ribbon, fine_u(part) + (fine_u(part + 1) - fine_u(part)) * t);
    }
  }
  spine.point[spine.count++] = on_curve(ribbon, 1);
}

/// Leaves out what lies right of `x`. The points are in order of x.
void cut(Spine& spine, float x) {
  for (uint32_t i = 1; i < spine.count; ++i) {
    const SpinePoint &a = spine.point[i - 1], &b = spine.point[i];
    if (b.at.x <= x) continue;
    spine.point[i] = between(a, b, std::clamp((x - a.at.x) / std::max(b.at.x - a.at.x, 1e-3f), 0.0f, 1.0f));
    spine.count = i + 1;
    return;
  }
}

float distance(const SpinePoint& a, const SpinePoint& b) {
  return length_of({b.at.x - a.at.x, b.at.y - a.at.y});
}

/// Adds a point at this length from the first one.
void add_at(Spine& spine, float length) {
  for (uint32_t i = 1; i < spine.count; ++i) {
    const float piece = distance(spine.point[i - 1], spine.point[i]);
    if (length > piece) {
      length -= piece;
      continue;
    }
    const SpinePoint added = between(spine.point[i - 1], spine.point[i], length / std::max(piece, 1e-4f));
    std::copy_backward(&spine.point[i], spine.point.data() + spine.count, spine.point.data() + spine.count + 1);
    spine.point[i] = added;
    ++spine.count;
    return;
  }
}

void soften(Spine& spine, float soft) {
  float whole = 0;
  for (uint32_t i = 1; i < spine.count; ++i) whole += distance(spine.point[i - 1], spine.point[i]);
  const float fade = std::max(std::min(soft, whole * 0.5f), 1e-3f);
  add_at(spine, fade);
  add_at(spine, whole - fade);
  float at = 0;
  for (uint32_t i = 0; i < spine.count; ++i) {
    if (i > 0) at += distance(spine.point[i - 1], spine.point[i]);
    // A limb shorter than both its fades does not become as bright as others.
    spine.point[i].alpha = std::clamp(std::min(at, whole - at) / soft, 0.0f, 1.0f);
  }
}

}  // namespace

SpinePoint on_curve(const Ribbon& ribbon, float u) {
  const float ease = eased(u), half = (ribbon.begin + (ribbon.end - ribbon.begin) * ease) * 0.5f;
  const TreePoint to = direction(ribbon, ribbon.q.y - ribbon.p.y, u);
  const float speed = length_of(to);
  const TreePoint across = speed < 1e-4f ? TreePoint(0, 1) : TreePoint(-to.y / speed, to.x / speed);
  return {{ribbon.p.x + (ribbon.q.x - ribbon.p.x) * along_x(u), ribbon.p.y + (ribbon.q.y - ribbon.p.y) * ease},
          across,
          half,
          1};
}

float bend_at(const Spine& spine, uint32_t point) {
  // The sharper of the bends before and after it.
  float sharpest = 0;
  for (uint32_t i = std::max(point, 1u); i <= std::min(point + 1, spine.count - 1); ++i) {
    const SpinePoint &a = spine.point[i - 1], &b = spine.point[i];
    const float angle = a.across.x * b.across.y - a.across.y * b.across.x;
    const float bend = angle / std::max(distance(a, b), 1e-3f);
    if (std::abs(bend) > std::abs(sharpest)) sharpest = bend;
  }
  return sharpest;
}

Spine spine_of(const Ribbon& ribbon, float reached, float soft) {
  Spine spine;
  if (ribbon.from < ribbon.p.x - 0.5f)
    spine.point[spine.count++] = {{ribbon.from, ribbon.p.y}, {0, 1}, ribbon.begin * 0.5f, 1};
  add_curve(spine, ribbon);
  if (reached < 1) cut(spine, ribbon.from + (ribbon.q.x - ribbon.from) * reached);
  if (soft > 0) soften(spine, soft);
  return spine;
}

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
