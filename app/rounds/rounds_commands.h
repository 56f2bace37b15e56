#pragma once
// What the user can ask of the rounds that are shown.

#include <optional>
#include <string>
#include <variant>

#include "app/rounds/rounds_state.h"

namespace canopy::app {

struct TogglePause {};
struct FollowRounds {};  // the newest, from now on
struct StepRound {       // pauses; in slow motion a phase at a time
  int by = 1;
};
struct ShowRound {  // pauses
  size_t round = 0;
};
struct SetSpeed {
  double speed = 1;
};
struct SetSlowMotion {
  bool on = true;
};
struct HoverNode {
  std::optional<NodeRef> node;
};
struct SelectNode {  // shows its round
  std::optional<NodeRef> node;
};
struct OpenTrace {
  std::string path;
};
struct CloseTrace {};  // back to the engine's own rounds

using RoundsCommand = std::variant<TogglePause, FollowRounds, StepRound, ShowRound, SetSpeed, SetSlowMotion, HoverNode,
                                   SelectNode, OpenTrace, CloseTrace>;

}  // namespace canopy::app
