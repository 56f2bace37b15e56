// Prints what slow motion shows of some rounds of a trace at some moments, as JSON: for the test that the page's script
// (app/share/page/player.js) follows the same rules as the window.

#include <iostream>
#include <nlohmann/json.hpp>

#include "app/state/round_log.h"
#include "app/tree/tree_look.h"
#include "app/tree/tree_model.h"

int main(int argc, char** argv) {
  using namespace canopy::app;
  if (argc != 2) return 2;
  const TraceLog log(argv[1]);
  nlohmann::json samples = nlohmann::json::array();
  for (size_t round = 0; round < log.rounds(); round += 7) {
    const TreeModel tree = tree_of_round(*log.round(round), log, round);
    for (uint32_t phase = 0; phase < kPhases; ++phase)
      for (const float progress : {0.0f, 0.3f, 0.5f, 0.84f, 1.0f}) {
        const TreeReveal now = reveal(tree, static_cast<Phase>(phase), progress);
        nlohmann::json nodes = nlohmann::json::array();
        for (const NodeReveal& node : now.nodes)
          nodes.push_back({node.shown, node.judged, node.strength, node.lit, node.width});
        const bool walking = now.walker != canopy::TreeNode::none;
        samples.push_back({{"round", round},
                           {"phase", phase},
                           {"progress", progress},
                           {"nodes", std::move(nodes)},
                           {"filled", now.filled},
                           {"draftShown", now.draft_shown},
                           {"verified", now.verified},
                           {"walker", walking ? static_cast<int64_t>(now.walker) : -1},
                           {"whole", now.whole}});
      }
  }
  std::cout << samples.dump() << "\n";
  return 0;
}
