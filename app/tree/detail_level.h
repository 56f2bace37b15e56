#pragma once
// How much of a node is drawn, by the height of a row (look.md, section 6). Readability sets it, not speed.

#include <cstdint>
#include <optional>

namespace canopy::app {

enum class Detail : uint8_t {
  folded,   // under 2: the path; rejected subtrees are wedges
  dots,     // from 2: badges without labels
  badges,   // from 5: badges, labels along the path
  pills,    // from 14: every node in a pill with its label and the bar of q
  figures,  // from 34: q under accepted and rejected nodes, clear of the row below
  full,     // from 40: q inside every node
};

/// row_height: pixels at 100%. before: the level so far, which stays within 10% around a border, so that a view on the
/// border does not flicker.
Detail detail_for(float row_height, std::optional<Detail> before = std::nullopt);

/// The least height of a row at which a level is drawn.
float least_row_height(Detail detail);

inline bool has_pills(Detail detail) {
  return detail >= Detail::pills;
}

}  // namespace canopy::app
