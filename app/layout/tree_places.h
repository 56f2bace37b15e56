#pragma once
// Which places of a canvas a tree takes, for what stands beside it or over it: notes, and the tour. Pure; pixels of the
// canvas.

#include <optional>
#include <span>
#include <vector>

#include "app/layout/tree_geometry.h"

namespace canopy::app {

/// The pill of a node with its badge.
TreeRect pill_of(const TreeGeometry& geometry, uint32_t node, float scale);

/// The pills of the accepted path and of the bonus.
std::vector<TreeRect> path_pills(const TreeModel& tree, const TreeGeometry& geometry, float scale);

/// All other words, and the tufts with their labels.
std::vector<TreeRect> other_words(const TreeModel& tree, const TreeGeometry& geometry, float scale);

/// Where the accepted path is: up to the children of the node at which it leaves the drafter's favourite, and the rest
/// of it; one place where it never leaves it.
std::vector<TreeRect> path_places(const TreeModel& tree, const TreeGeometry& geometry, float scale);

/// The first of the places that overlaps nothing of what is taken; none where all of them do.
std::optional<TreeRect> clear_place(std::span<const TreeRect> places, std::span<const TreeRect> taken);

/// Places for the number of a word, which has this size: above the word, at its right, at its left, below it.
std::vector<TreeRect> number_places(const TreeRect& pill, TreePoint size, float scale);

/// Places for a note of this size on a canvas, the likeliest to be looked at first: from `wished` on the bottom row,
/// and then row by row upward, on each row at the left, in the middle, at the right and between.
std::vector<TreeRect> note_places(const CanvasSize& canvas, TreePoint size, float wished_x);

}  // namespace canopy::app
