#pragma once
// Where the nodes of a tree go, in rows and columns. Pure functions: the same tree gives the same places.
//
// Rows are subtree contours (Reingold and Tilford, "Tidier Drawings of Trees", 1981), siblings by rank from the top.
// Columns are depths.

#include <cstdint>
#include <span>
#include <vector>

#include "app/tree/tree_model.h"

namespace canopy::app {

struct TreeRows {
  std::vector<int32_t> row;  // [nodes] from 0
  int32_t count = 0;
  uint64_t steps = 0;  // comparisons of contours, for a test of growth: at most one for each node
};

/// A parent is level with its first child; pin_path: with the child on the path instead, so that the path is one
/// straight line. A leaf keeps the next column of its row free, or a neighbour would look like its child.
TreeRows place_rows(const TreeModel& tree, bool pin_path);

/// How much of a label's room a node gives up first when columns must shrink.
enum class LabelClaim : uint8_t { most, less, least };
inline constexpr size_t kClaims = 3;

struct ColumnNeed {
  float label[kClaims] = {};  // the widest label of each claim, pixels
  float around = 0;           // padding of the widest node around its label
};

struct TreeColumns {
  std::vector<float> x;       // left edges
  std::vector<float> width;   // without the gap behind
  float label_room[kClaims];  // no label may be wider
  float total = 0;            // from the first column's left edge to the last one's right edge
  bool tight = false;         // some label is cut
};

struct ColumnRoom {
  float width = 0;
  float gap = 14;       // between columns, at least
  float tight_gap = 8;  // where that is not enough
  float shortest = 0;   // no label is cut below this
};

/// As wide as the labels where there is room, and what is left spread evenly; else the widest labels of the least
/// claim are cut first, then of the next. Still too wide: wider than the room.
TreeColumns place_columns(std::span<const ColumnNeed> needs, const ColumnRoom& room);

}  // namespace canopy::app
