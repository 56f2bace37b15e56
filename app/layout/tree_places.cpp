#include "app/layout/tree_places.h"

#include <algorithm>

namespace canopy::app {
namespace {

constexpr float kNoteMargin = 8, kNoteStep = 12, kLineOfDepths = 22;
constexpr uint32_t kNoteColumns = 9;

TreeRect joined(const TreeRect& a, const TreeRect& b) {
  return {std::min(a.x0, b.x0), std::min(a.y0, b.y0), std::max(a.x1, b.x1), std::max(a.y1, b.y1)};
}

}  // namespace

TreeRect pill_of(const TreeGeometry& geometry, uint32_t node, float scale) {
  const NodeBox& box = geometry.nodes[node];
  const float half = geometry.pill_height * 0.5f, badge = tree_design::badge * scale * geometry.text_scale;
  return {box.x - badge, box.y - half, box.x + box.width, box.y + half};
}

std::vector<TreeRect> path_pills(const TreeModel& tree, const TreeGeometry& geometry, float scale) {
  std::vector<TreeRect> pills;
  for (const uint32_t node : tree.path)
    if (geometry.nodes[node].named) pills.push_back(pill_of(geometry, node, scale));
  return pills;
}

std::vector<TreeRect> other_words(const TreeModel& tree, const TreeGeometry& geometry, float scale) {
  std::vector<TreeRect> words;
  for (uint32_t node = 0; node < tree.size(); ++node)
    if (geometry.nodes[node].named && !tree.on_path(node)) words.push_back(pill_of(geometry, node, scale));
  for (const TuftBox& tuft : geometry.tufts) words.push_back(rect_of(tuft, geometry.pitch));
  return words;
}

std::vector<TreeRect> path_places(const TreeModel& tree, const TreeGeometry& geometry, float scale) {
  std::vector<TreeRect> places;
  std::optional<TreeRect> place;
  const auto add = [&](uint32_t node) {
    const NodeBox& box = geometry.nodes[node];
    if (!box.named) return;
    const float half = geometry.pill_height * 0.5f + 8 * scale;
    const TreeRect own = {box.x - 12 * scale, box.y - half, box.x + box.width + 8 * scale, box.y + half};
    place = place ? joined(*place, own) : own;
  };
  bool left = false;
  for (const uint32_t node : tree.path) {
    if (node == 0 && tree.path.size() > 1) continue;
    add(node);
    if (left || node == tree.bonus || tree.nodes[node].rank == 0) continue;
    left = true;
    add(tree.children(tree.nodes[node].parent).front());
    if (place) places.push_back(*place);
    place.reset();
  }
  if (place) places.push_back(*place);
  return places;
}

std::optional<TreeRect> clear_place(std::span<const TreeRect> places, std::span<const TreeRect> taken) {
  for (const TreeRect& place : places)
    if (std::ranges::none_of(taken, [&](const TreeRect& each) { return place.overlaps(each); })) return place;
  return std::nullopt;
}

std::vector<TreeRect> number_places(const TreeRect& pill, TreePoint size, float scale) {
  const float gap = 3 * scale, middle = (pill.y0 + pill.y1 - size.y) * 0.5f;
  const float inset = pill.x0 + tree_design::badge * scale + 2 * scale;
  // Digits are lower than their line, so that a number above a word needs less than all of it.
  const float air = size.y * 0.15f;
  std::vector<TreeRect> places;
  for (const TreePoint at : {TreePoint{inset, pill.y0 - size.y + air}, TreePoint{pill.x1 + gap, middle},
                             TreePoint{pill.x0 - gap - size.x, middle}, TreePoint{inset, pill.y1 - air}})
    places.push_back({at.x, at.y + air, at.x + size.x, at.y + size.y - air});
  return places;
}

std::vector<TreeRect> note_places(const CanvasSize& canvas, TreePoint size, float wished_x) {
  const float margin = kNoteMargin * canvas.scale, last = canvas.width - margin - size.x;
  std::vector<float> columns = {wished_x, margin, (canvas.width - size.x) * 0.5f, last};
  for (uint32_t i = 1; i + 1 < kNoteColumns; ++i)
    columns.push_back(margin + (last - margin) * static_cast<float>(i) / (kNoteColumns - 1));
  std::vector<TreeRect> places;
  const float top = kLineOfDepths * canvas.scale;
  for (float y = canvas.height - margin * 0.5f - size.y; y >= top; y -= kNoteStep * canvas.scale)
    for (const float x : columns)
      if (x >= 0 && x + size.x <= canvas.width) places.push_back({x, y, x + size.x, y + size.y});
  return places;
}

}  // namespace canopy::app
