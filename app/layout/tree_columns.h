#pragma once
// Columns of a tree, one for each depth: as wide as their words where there is room.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace canopy::app {

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
