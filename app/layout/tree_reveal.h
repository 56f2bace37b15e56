#pragma once
// Slow motion: how much of a round is visible at a moment of its six phases. Pure; the caller has the clock.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "app/layout/tree_model.h"
#include "app/rounds/playback.h"

namespace canopy::app {

struct PhaseText {
  std::string_view name, words;
};
/// Title and sentence of each phase (look/watch.md, "Slow motion"). "{n}" stands for the tokens that the round emitted.
const std::array<PhaseText, kPhases>& phase_texts();
std::string phase_sentence(Phase phase, size_t emitted);

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
/// first.
std::vector<std::vector<uint32_t>> draft_positions(const TreeModel& tree);

}  // namespace canopy::app
