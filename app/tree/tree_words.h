#pragma once
// Which nodes of a tree are drawn with their words, the tufts that stand for all others, and the rows and columns that
// the words get.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "app/tree/tree_model.h"

namespace canopy::app {

// Which nodes of a tree are drawn with their words, and the tufts that stand for all others. Pure functions of the tree
// and the rows there are.

/// The children of a node that have no word, with everything below them, drawn as one bundle of twigs.
struct Tuft {
  uint32_t parent = 0;          // a node with a word
  std::vector<uint32_t> heads;  // the children, by rank
  uint32_t nodes = 0;           // the heads and all below them
  double mass = 0;              // sum of the heads' path probabilities
  bool rejected = false;        // the parent was accepted, so the target decided against the heads
};

struct TreeWords {
  std::vector<uint8_t> named;    // [nodes] 1: drawn with its word; so is every ancestor of such a node
  std::vector<Tuft> tufts;       // by parent; they hold exactly the drafted nodes without words
  std::vector<int32_t> tuft_of;  // [nodes] index of the node's own tuft, -1 without one
  uint32_t due = 0;              // nodes that have words however few rows there are
};

/// Words, in this order while the rows last: the accepted path with the bonus; at each accepted node its likeliest
/// rejected child; the others by path probability, parents first. The first two have words in any case, even where
/// they need more than `rows`.
TreeWords choose_words(const TreeModel& tree, float rows);

/// Rows of words and tufts, as real numbers: 1 for a word, kTuftRows for a tuft.
struct WordRows {
  std::vector<float> node;  // [nodes] the middle of a word, 0 at the top edge; meaningless without a word
  std::vector<float> tuft;  // [tufts] likewise
  float count = 0;
};
inline constexpr float kTuftRows = 0.8f;

/// Places words. The likeliest child continues its parent's row; further children, by rank, take the side that reaches
/// less far, the likeliest nearest to the parent; then comes the tuft. Subtrees are packed by contours; the column
/// behind a leaf stays free in its row. What became of the nodes moves none of them: only the bonus, which has a row of
/// its own from the start, depends on it.
WordRows place_words(const TreeModel& tree, const TreeWords& words);

// Columns of a tree, one for each depth: as wide as their words where there is room.

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
