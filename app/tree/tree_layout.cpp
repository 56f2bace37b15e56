#include "app/tree/tree_layout.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace canopy::app {
namespace {

constexpr float kUncut = std::numeric_limits<float>::max();

/// The highest and lowest row of a subtree at each depth below its root. The deepest level comes first, so that the
/// level of a parent is appended at the end. Rows are relative to `origin`, so that moving a subtree changes no level.
struct Contour {
  struct Level {
    int32_t top, bottom;
  };
  std::vector<Level> levels;
  int32_t origin = 0;

  Level level(size_t from_top) const {
    const Level& l = levels[levels.size() - 1 - from_top];
    return {l.top + origin, l.bottom + origin};
  }
};

/// How many rows `lower` must move down to lie below `upper` at every depth that both have, and below its first row.
int32_t distance(const Contour& upper, const Contour& lower, int32_t last_row, uint64_t& steps) {
  int32_t shift = last_row + 1;
  const size_t common = std::min(upper.levels.size(), lower.levels.size());
  for (size_t i = 0; i < common; ++i) shift = std::max(shift, upper.level(i).bottom - lower.level(i).top + 1);
  steps += common;
  return shift;
}

/// The contour around both, lower below upper; reuses the memory of the deeper one.
Contour joined(Contour upper, Contour lower) {
  const size_t common = std::min(upper.levels.size(), lower.levels.size());
  const bool upper_deeper = upper.levels.size() >= lower.levels.size();
  Contour& deeper = upper_deeper ? upper : lower;
  const Contour& other = upper_deeper ? lower : upper;
  for (size_t i = 0; i < common; ++i) {
    const Contour::Level theirs = other.level(i);
    Contour::Level& mine = deeper.levels[deeper.levels.size() - 1 - i];
    (upper_deeper ? mine.bottom : mine.top) = (upper_deeper ? theirs.bottom : theirs.top) - deeper.origin;
  }
  return std::move(deeper);
}

/// Places the children of a node in rows relative to it and returns the contour of its subtree.
Contour place_children(const TreeModel& tree, uint32_t node, uint32_t level_with, std::vector<Contour>& contours,
                       std::vector<int32_t>& offset, uint64_t& steps) {
  Contour all;
  int32_t last_row = -1, mine = 0;
  for (const uint32_t child : tree.children(node)) {
    Contour next = std::move(contours[child]);
    const int32_t row = last_row < 0 ? 0 : distance(all, next, last_row, steps);
    next.origin += row;
    all = last_row < 0 ? std::move(next) : joined(std::move(all), std::move(next));
    offset[child] = last_row = row;
    if (child == level_with) mine = row;
  }
  for (const uint32_t child : tree.children(node)) offset[child] -= mine;
  all.origin -= mine;
  if (all.levels.empty()) all.levels.push_back({0, 0});  // the column after a leaf, which stays free
  all.levels.push_back({-all.origin, -all.origin});
  return all;
}

/// The width of a column whose labels are cut to `room` pixels, by claim.
float column_width(const ColumnNeed& need, const float* room) {
  float label = 0;
  for (size_t claim = 0; claim < kClaims; ++claim) label = std::max(label, std::min(need.label[claim], room[claim]));
  return label + need.around;
}

float total_width(std::span<const ColumnNeed> needs, const float* room, float gap) {
  float total = gap * static_cast<float>(needs.size() - 1);
  for (const ColumnNeed& need : needs) total += column_width(need, room);
  return total;
}

/// The largest room for labels of one claim with which everything fits; `shortest` if nothing does.
float fitting_room(std::span<const ColumnNeed> needs, float* room, size_t claim, float gap, const ColumnRoom& space) {
  float widest = space.shortest;
  for (const ColumnNeed& need : needs) widest = std::max(widest, need.label[claim]);
  float fits = space.shortest, too_much = widest;
  for (int halving = 0; halving < 16; ++halving) {
    room[claim] = (fits + too_much) * 0.5f;
    (total_width(needs, room, gap) <= space.width ? fits : too_much) = room[claim];
  }
  return room[claim] = fits;
}

}  // namespace

TreeRows place_rows(const TreeModel& tree, bool pin_path) {
  TreeRows rows;
  const uint32_t count = tree.size();
  std::vector<Contour> contours(count);
  std::vector<int32_t> offset(count, 0);
  for (uint32_t node = count; node-- > 0;) {
    const uint32_t straight = pin_path ? tree.next_on_path(node) : TreeNode::none;
    contours[node] = place_children(tree, node, straight, contours, offset, rows.steps);
  }
  rows.row.resize(count);
  int32_t top = 0, bottom = 0;
  for (uint32_t node = 1; node < count; ++node) {
    rows.row[node] = rows.row[tree.nodes[node].parent] + offset[node];
    top = std::min(top, rows.row[node]);
    bottom = std::max(bottom, rows.row[node]);
  }
  for (int32_t& row : rows.row) row -= top;
  rows.count = bottom - top + 1;
  return rows;
}

TreeColumns place_columns(std::span<const ColumnNeed> needs, const ColumnRoom& space) {
  TreeColumns columns;
  std::fill_n(columns.label_room, kClaims, kUncut);
  if (needs.empty()) return columns;
  float gap = space.gap;
  auto fits = [&] { return total_width(needs, columns.label_room, gap) <= space.width; };
  for (size_t claim = kClaims; claim-- > 0 && !fits();) {
    columns.tight = true;
    fitting_room(needs, columns.label_room, claim, gap, space);
    if (fits() || gap == space.tight_gap) continue;
    gap = space.tight_gap;
    fitting_room(needs, columns.label_room, claim, gap, space);
  }
  const float spare = std::max(0.0f, space.width - total_width(needs, columns.label_room, gap));
  if (needs.size() > 1) gap += spare / static_cast<float>(needs.size() - 1);
  float x = 0;
  for (const ColumnNeed& need : needs) {
    columns.x.push_back(x);
    columns.width.push_back(column_width(need, columns.label_room));
    x += columns.width.back() + gap;
  }
  columns.total = x - gap;
  return columns;
}

}  // namespace canopy::app
