#pragma once
// What is shown of the rounds: which log, which of its rounds, which node; what the user can ask of it, and the
// functions that change it.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "app/rounds/live_log.h"
#include "app/rounds/playback.h"

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

struct RoundsState {
  std::shared_ptr<LiveLog> live = std::make_shared<LiveLog>();  // the engine's own rounds, whatever is shown
  std::shared_ptr<RoundLog> log = live;                         // never null
  Playback playback;
  std::optional<NodeRef> hovered;   // in the tree or in the chat: the other one shows it too
  std::optional<NodeRef> selected;  // its card stays open
  std::string trace_path;           // of a trace that is shown; empty: the engine's own rounds
  bool reduced_motion = false;      // every duration 0; slow motion steps by key

  /// The round to show; null before the first, and where its tree was let go.
  std::shared_ptr<const RoundRecord> shown() const {
    return playback.shown < log->rounds() ? log->round(playback.shown) : nullptr;
  }
};

/// Folds an event of the engine in: its rounds are kept whatever is shown.
void update(RoundsState& rounds, const Event& event);

/// Folds a command of the user in. OpenTrace and WatchDemo need the disk: show_trace() does what they ask for.
void update(RoundsState& rounds, const RoundsCommand& command);

/// Lets time pass.
void advance(RoundsState& rounds, double milliseconds);
/// Whether it changes what is shown.
bool moves(const RoundsState& rounds);

/// Shows another log from its first round, paused; path is where it came from.
void show_log(RoundsState& rounds, std::shared_ptr<RoundLog> log, const std::string& path);

}  // namespace canopy::app
