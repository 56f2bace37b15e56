#pragma once
// How a tree looks at a moment: what slow motion has revealed, the transition from one tree to the next, and the look
// and colours of nodes and limbs.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "app/state/rounds.h"
#include "app/state/theme.h"
#include "app/tree/tree_geometry.h"
#include "app/tree/tree_model.h"

namespace canopy::app {

// The transition from one tree to the next: a node with the same token at the same position moves, all others fade in.

inline constexpr double kTransitionSeconds = 0.2;

/// Two nodes of different rounds with the same key are the same guess: the same token at the same position of the text.
struct NodeKey {
  uint64_t position = 0;
  uint32_t token = 0;
  auto operator<=>(const NodeKey&) const = default;
};

std::vector<NodeKey> node_keys(const TreeModel& tree, uint32_t context);

/// For each node of the new tree the old node with the same key, or TreeNode::none. No old node is used twice; of
/// several with the same key those on the path come first, then those of lower index.
std::vector<uint32_t> match_nodes(const TreeModel& before, const std::vector<NodeKey>& before_keys,
                                  const TreeModel& now, const std::vector<NodeKey>& now_keys);

/// Moves the boxes of `now` towards their old places `before`; t: share of the transition that has passed, in [0, 1].
void blend(const std::vector<NodeBox>& before, const std::vector<uint32_t>& match, float t, std::vector<NodeBox>& now);

/// Cubic easing from 0 to 1, slow at both ends.
float ease_in_out(float t);
/// Cubic easing from 0 to 1, slow at the end.
float ease_out(float t);

// Slow motion: how much of a round is visible at a moment of its six phases. Pure; the caller has the clock.

struct PhaseText {
  std::string_view name, words;
};
/// The title of a phase for this tree: in plain decoding there is no bonus.
std::string_view phase_name(Phase phase, const TreeModel& tree);

/// Title and sentence of each phase of a round that the drafter guessed. "{n}" stands for the tokens that the round
/// emitted.
const std::array<PhaseText, kPhases>& phase_texts();
std::string phase_sentence(Phase phase, size_t emitted);
/// The same of a tree, which says where its guesses come from.
std::string phase_sentence(Phase phase, size_t emitted, const TreeModel& tree);

struct NodeReveal {
  float shown = 1;     // opacity: 0 not there yet, 1 fully
  bool judged = true;  // its fate is shown; before that all drafted nodes look the same
  float strength = 1;  // of its colours; the commit phase dims what is dropped
  float lit = 1;       // share of the limb to it that has the colour of accepted nodes, if it is one
  float width = 1;     // of its limb; what was decided against withers
};

struct TreeReveal {
  std::vector<NodeReveal> nodes;  // [nodes]
  float filled = 1;          // share of the draft phase; the same for all positions, as one pass computes them together
  bool draft_shown = false;  // draw the draft positions and not the tree
  float verified = 0;        // share of the verify phase; the same for all nodes
  uint32_t walker = TreeNode::none;  // the node on the path that the walk has reached
  bool whole = true;                 // everything is shown as usual
};

/// progress: share of the phase, in [0, 1].
TreeReveal reveal(const TreeModel& tree, Phase phase, float progress);

/// [depth - 1] nodes with the drafter's candidates at each depth that are in the tree: distinct tokens, the likeliest
/// first. Without what only the text proposed.
std::vector<std::vector<uint32_t>> draft_positions(const TreeModel& tree);

// How the nodes and limbs of a tree look at a moment: which look each has and its colours. Pure.

/// How a node is drawn. Undecided: a drafted node before the walk has reached it; all of them have the same colours.
enum class NodeLook : uint8_t { root, undecided, accepted, rejected, not_reached, bonus };

NodeLook look_of(const TreeModel& tree, const TreeReveal& reveal, uint32_t node);
NodeLook look_of(const TreeReveal& reveal, const Tuft& tuft);

/// The opacity of a node.
float strength_of(const TreeReveal& reveal, uint32_t node);
/// The share of a tuft's nodes that are there.
float share_shown(const TreeReveal& reveal, const Tuft& tuft);
/// The width of a node's pill as it looks now: the percentage comes with the verdict.
float pill_width(const TreeGeometry& geometry, const TreeReveal& reveal, uint32_t node);

// Who proposed a node is told by shape, in all states and colours: a pill has round corners where the drafter did and
// square ones where it did not, and its upper right corner is filled where the word was found in the text.

/// The radius of the corners of a node's pill.
float pill_round(const TreeNodeView& node, float pill_height);
/// The sides of the filled corner. scale: pixels for each unit of the design.
float found_corner(float pill_height, float scale);
/// Whether a child of the tuft's parent was found in the text: then the corner stands behind the tuft's label.
bool is_found(const TreeModel& tree, const Tuft& tuft);

/// Thickness at 100% from which a rejected limb is drawn as an outline.
inline constexpr float kHollowFrom = 5;

/// The colour of a limb's wood. hollow: it is at least kHollowFrom thick.
Colour limb_colour(const Theme& theme, NodeLook look, bool hollow);
/// The colour of the ends of a tuft's twigs that are no children of its parent.
Colour twig_end_colour(const Theme& theme, NodeLook look);
/// A word of another chat, which is not shown, is muted in every state.
Colour word_colour(const Theme& theme, const TreeNodeView& node, NodeLook look);
/// Of the corner of a word that was found in the text.
Colour found_colour(const Theme& theme, NodeLook look);
Colour fate_colour(const Theme& theme, NodeFate fate);
Colour fate_text_colour(const Theme& theme, NodeFate fate);

}  // namespace canopy::app
