#pragma once
// What the user can ask of the rounds that are shown.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>

namespace canopy::app {

/// A node of a round's tree. The bonus is no node of the record: it goes by the number behind the last one.
struct NodeRef {
  size_t round = 0;
  uint32_t node = 0;  // of RoundRecord::nodes, 0 is the root; nodes.size(): the bonus
  bool operator==(const NodeRef&) const = default;
};

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
struct SetReducedMotion {
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
struct WatchDemo {  // plays a recorded run that comes with Canopy
  size_t demo = 0;  // of demos()
};
struct CloseTrace {};  // back to the engine's own rounds

using RoundsCommand = std::variant<TogglePause, FollowRounds, StepRound, ShowRound, SetSpeed, SetSlowMotion,
                                   SetReducedMotion, HoverNode, SelectNode, OpenTrace, WatchDemo, CloseTrace>;

}  // namespace canopy::app
