#pragma once
// Slow motion: what of a round is to be seen at a moment of its six phases. Pure; the caller has the clock.

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "app/rounds/playback.h"
#include "app/tree/tree_model.h"

namespace canopy::app {

struct PhaseText {
  std::string_view name, words;
};
/// By Phase: "Draft", "all positions fill together", ...
const std::array<PhaseText, kPhases>& phase_texts();

struct NodeReveal {
  float shown = 1;     // 0 not there, 1 whole
  bool judged = true;  // its fate is known; before, all drafted nodes look alike
  float strength = 1;  // of its colours; the commit dims what is dropped
};

struct TreeReveal {
  std::vector<NodeReveal> nodes;     // [nodes]
  float filled = 1;                  // of every draft position: one pass fills them all together
  bool draft_shown = false;          // the positions are drawn, not the tree
  float verified = 0;                // of the whole tree at once
  uint32_t walker = TreeNode::none;  // the node of the path that the walk has come to
  bool whole = true;                 // nothing is held back: drawn as ever
};

/// progress in [0, 1] of the phase.
TreeReveal reveal(const TreeModel& tree, Phase phase, float progress);

/// What the drafter offered at a depth, as far as the tree holds it: distinct tokens, the likeliest first. [depth - 1]
std::vector<std::vector<uint32_t>> draft_positions(const TreeModel& tree);

}  // namespace canopy::app
