#include "app/layout/tree_columns.h"

#include <algorithm>

namespace canopy::app {
namespace {

constexpr float kUncut = 1e9f;

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
