#pragma once
// How the nodes and limbs of a tree look at a moment: which look each has and its colours. Pure.

#include <cstdint>

#include "app/base/theme.h"
#include "app/layout/tree_geometry.h"
#include "app/layout/tree_reveal.h"

namespace canopy::app {

/// How a node is drawn. Undecided: a drafted node before the walk has reached it; all of them look the same.
enum class NodeLook : uint8_t { root, undecided, accepted, rejected, not_reached, bonus };

NodeLook look_of(const TreeModel& tree, const TreeReveal& reveal, uint32_t node);
NodeLook look_of(const TreeReveal& reveal, const Tuft& tuft);

/// The opacity of a node.
float strength_of(const TreeReveal& reveal, uint32_t node);
/// The share of a tuft's nodes that are there.
float share_shown(const TreeReveal& reveal, const Tuft& tuft);
/// The width of a node's pill as it looks now: the percentage comes with the verdict.
float pill_width(const TreeGeometry& geometry, const TreeReveal& reveal, uint32_t node);

/// Thickness at 100% from which a rejected limb is drawn as an outline.
inline constexpr float kHollowFrom = 5;

/// The colour of a limb's wood. hollow: it is at least kHollowFrom thick.
Colour limb_colour(const Theme& theme, NodeLook look, bool hollow);
/// The colour of the ends of a tuft's twigs that are no children of its parent.
Colour twig_end_colour(const Theme& theme, NodeLook look);
Colour word_colour(const Theme& theme, NodeLook look);
Colour fate_colour(const Theme& theme, NodeFate fate);
Colour fate_text_colour(const Theme& theme, NodeFate fate);

}  // namespace canopy::app
