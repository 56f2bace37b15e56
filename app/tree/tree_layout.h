#pragma once
// Rows and columns of a tree's nodes. Pure functions: the same tree gives the same layout. Rows are found with subtree
// contours (Reingold and Tilford, "Tidier Drawings of Trees", 1981), siblings in the order of rank from the top.
// Columns are depths.

#include <cstdint>
#include <span>
#include <vector>

#include "app/tree/tree_model.h"

namespace canopy::app {

struct TreeRows {
  std::vector<int32_t> row;  // [nodes], counted from 0
  int32_t count = 0;
  uint64_t steps = 0;  // comparisons of contours; a test checks that there is at most one for each node
};

/// A parent is in the row of its first child; with pin_path in the row of the child on the path, so that the path is a
/// straight line. The column after a leaf stays free in the leaf's row, or a neighbour would look like its child.
TreeRows place_rows(const TreeModel& tree, bool pin_path);

/// Which labels are shortened first when columns must shrink: those with the least claim.
enum class LabelClaim : uint8_t { most, less, least };
inline constexpr size_t kClaims = 3;

struct ColumnNeed {
  float label[kClaims] = {};  // the widest label of each claim, pixels
  float around = 0;           // pixels around the label of the widest node
};

struct TreeColumns {
  std::vector<float> x;       // left edges, pixels
  std::vector<float> width;   // without the gap after it
  float label_room[kClaims];  // no label may be wider
  float total = 0;            // from the first column's left edge to the last one's right edge
  bool tight = false;         // whether some label is cut
};

struct ColumnRoom {
  float width = 0;
  float gap = 14;       // least gap between columns
  float tight_gap = 8;  // gap where the usual one leaves too little room
  float shortest = 0;   // no label is cut to less
};

/// Columns as wide as their labels if there is room, the rest spread evenly. Otherwise the widest labels of the least
/// claim are shortened first, then those of the next. If even that is too wide, the result is wider than the room.
TreeColumns place_columns(std::span<const ColumnNeed> needs, const ColumnRoom& room);

}  // namespace canopy::app
