#pragma once
// Which rounds are shown: the log, the round in it and the node. Also the commands of the user about rounds, and the
// functions that carry them out.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "app/rounds/live_log.h"
#include "app/rounds/playback.h"

namespace canopy::app {

/// A node of a round's tree. The bonus token is no node of the record: its number is the one after the last node.
struct NodeRef {
  size_t round = 0;
  uint32_t node = 0;  // index in RoundRecord::nodes, 0 is the root; nodes.size() is the bonus
  bool operator==(const NodeRef&) const = default;
};

struct TogglePause {};
struct FollowRounds {};  // show the newest round from now on
struct StepRound {       // pauses; in slow motion it steps by phases
  int by = 1;
};
struct ShowRound {  // pauses on this round
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
struct SelectNode {  // also shows the round of the node
  std::optional<NodeRef> node;
};
struct OpenTrace {
  std::string path;
};
struct WatchDemo {  // plays a recorded run that comes with Canopy
  size_t demo = 0;  // index in demos()
};
struct CloseTrace {};  // shows the engine's own rounds again

using RoundsCommand = std::variant<TogglePause, FollowRounds, StepRound, ShowRound, SetSpeed, SetSlowMotion,
                                   SetReducedMotion, HoverNode, SelectNode, OpenTrace, WatchDemo, CloseTrace>;

struct RoundsState {
  // The engine's own rounds, also collected while a trace is shown.
  std::shared_ptr<LiveLog> live = std::make_shared<LiveLog>();
  std::shared_ptr<RoundLog> log = live;  // the log that is shown; never null
  Playback playback;
  // Under the mouse, in the tree or in the chat; the other of the two highlights it too.
  std::optional<NodeRef> hovered;
  std::optional<NodeRef> selected;  // its card stays open
  std::string trace_path;           // of the trace that is shown; empty: the engine's own rounds
  bool reduced_motion = false;      // no animation: every duration is 0, and slow motion moves only by step()

  /// Whether the engine has written rounds after the shown one that are not followed.
  bool behind_live() const {
    return log->is_live() && playback.state != PlayState::following && playback.shown + 1 < log->rounds();
  }

  /// The round to show; null before the first round, and where its tree was dropped to save memory.
  std::shared_ptr<const RoundRecord> shown() const {
    return playback.shown < log->rounds() ? log->round(playback.shown) : nullptr;
  }
};

/// Applies an event of the engine. The rounds of the engine are collected whatever is shown.
void update(RoundsState& rounds, const Event& event);

/// Applies a command of the user. OpenTrace and WatchDemo do nothing here, as they need the disk: show_trace() carries
/// them out.
void update(RoundsState& rounds, const RoundsCommand& command);

/// Whether the newest round is shown as it is being written: following, and the reply has not ended.
bool is_live(const RoundsState& rounds);

/// Moves the replay on by this many milliseconds.
void advance(RoundsState& rounds, double milliseconds);
/// Whether advance() would change what is shown.
bool moves(const RoundsState& rounds);

/// Begins a new log of the engine's rounds, for another chat or another model. `model` is the loaded one; null: none.
/// A trace that is shown stays.
void begin_live_log(RoundsState& rounds, const ModelReady* model);

/// Shows another log, paused at its first round. `path` is the trace file it was read from.
void show_log(RoundsState& rounds, std::shared_ptr<RoundLog> log, const std::string& path);

}  // namespace canopy::app
