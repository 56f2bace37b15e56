#pragma once
// Which rounds are shown: the log, the round in it, the node, and the replay that moves through them in time. Also the
// commands of the user about rounds.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "app/state/live_log.h"
#include "app/state/round_log.h"

namespace canopy::app {

// The replay of rounds: which round is shown, and how far its slow motion has come. The engine neither waits for it nor
// knows of it. Has no clock of its own: the caller says how many milliseconds have passed.

enum class PlayState : uint8_t {
  following,  // always shows the newest round
  playing,    // shows one round after the other, at `speed` times the speed at which they were computed
  paused,     // keeps showing the same round, whatever the engine does
};

/// The phases of a round in slow motion, in their order. An AR round has no draft, so it begins with `verify`. One with
/// guesses from the text alone asks no drafter, so it begins with `insert`.
enum class Phase : uint8_t { fill, insert, verify, walk, bonus, commit };
inline constexpr uint32_t kPhases = 6;

inline constexpr double kSlowest = 0.1;
inline constexpr double kFastest = 10;

inline constexpr float kArrived = 0.85f;  // share of the phase commit after which all tokens are in the text

struct Playback {
  PlayState state = PlayState::following;
  size_t shown = 0;          // number of the shown round in the log
  double speed = 1;          // from kSlowest to kFastest
  bool slow_motion = false;  // shows each round in six phases
  Phase phase = Phase::commit;
  float progress = 1;     // of the phase, from 0 to 1
  double elapsed_ms = 0;  // time since the shown round or phase began, at speed 1

  /// Whether the tokens of the shown round are in the text: in slow motion when they have arrived there.
  bool told() const { return !slow_motion || (phase == Phase::commit && progress >= kArrived); }
  /// Whether the target's pass over the shown round is over: in slow motion at the end of that phase.
  bool checked() const { return !slow_motion || phase > Phase::verify || (phase == Phase::verify && progress >= 1); }
};

/// Duration of a phase at speed 1, in milliseconds. accepted: drafted tokens that the round accepted; the walk takes a
/// step for each and one more, and as long as that needs.
double phase_ms(Phase phase, uint32_t accepted);
/// sources: who guessed in the round.
Phase first_phase(DecodeMode shape, DraftSources sources = kFromDflash);

/// Moves the replay on by this many milliseconds. Nothing moves while paused; with reduced motion, slow motion moves
/// only by step(). At its end a trace pauses, while a live log waits for more rounds.
void advance(Playback& playback, const RoundLog& log, double milliseconds, bool reduced_motion = false);
/// Whether advance() would still change something if no further round came, so that more frames must be drawn.
bool moves(const Playback& playback, const RoundLog& log, bool reduced_motion = false);

/// Pauses or plays. Play continues from the shown round; at the end of a trace it starts again with the first round,
/// and at the end of a live log it follows the newest.
void toggle_pause(Playback& playback, const RoundLog& log);
/// Shows the newest round from now on, and ends slow motion.
void follow(Playback& playback, const RoundLog& log);
/// Pauses and moves by `by` whole rounds, in slow motion by phases, each shown as it is at its end. In the middle of a
/// phase, one step forward goes to the end of that phase.
void step(Playback& playback, const RoundLog& log, int by);
/// Pauses and shows this round whole.
void show(Playback& playback, const RoundLog& log, size_t round);
/// Sets the speed, clamped to kSlowest ... kFastest; NaN and infinity are ignored. A replay that was following begins
/// to play, since following has no speed.
void set_speed(Playback& playback, double speed);
/// Pauses and shows this phase of the shown round as it is at its end.
void show_phase(Playback& playback, const RoundLog& log, Phase phase);
/// On: plays the shown round from its first phase (with reduced motion it pauses there). Off: shows the whole round.
void set_slow_motion(Playback& playback, const RoundLog& log, bool on, bool reduced_motion = false);

// The log, the round in it and the node that are shown; the commands of the user about them, and the functions that
// carry them out.

/// A node of a round's tree. The bonus token is no node of the record: its number is the one after the last node.
struct NodeRef {
  size_t round = 0;
  uint32_t node = 0;  // index in RoundRecord::nodes, 0 is the root; nodes.size() is the bonus
  bool operator==(const NodeRef&) const = default;
};

/// Where the text had what a node guesses (app/state/text_link.h).
struct FoundPlace {
  enum class Where {
    reply,          // the one that the node is of
    earlier_reply,  // of the same chat
    question,
    file,  // that went with a question
    system_prompt,
    hidden,        // what the chat template writes, tools, or a text that was cut into tokens in another way
    other_branch,  // a message that is not on show
  };
  NodeRef node;
  Where where = Where::hidden;
  uint64_t message = 0;                     // that has it; 0: none of the chat
  size_t begin = 0, followed = 0, end = 0;  // bytes of its text: what stood there before, and what followed it
  uint32_t tokens_back = 0;                 // of the reply itself: from its end then to `followed`
  std::string file;                         // its name
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

/// A visitor of a variant, from one function for each of its kinds.
template <class... F>
struct Cases : F... {
  using F::operator()...;
};
template <class... F>
Cases(F...) -> Cases<F...>;

struct RoundsState {
  // The engine's own rounds, also collected while a trace is shown.
  std::shared_ptr<LiveLog> live = std::make_shared<LiveLog>();
  std::shared_ptr<RoundLog> log = live;  // the log that is shown; never null
  Playback playback;
  // Under the mouse, in the tree or in the chat; the other of the two highlights it too.
  std::optional<NodeRef> hovered;
  std::optional<NodeRef> selected;  // its card stays open
  // Where they were found in the text; looked for when they are set. Of another node: stale (place_of()).
  std::optional<FoundPlace> hovered_place, selected_place;
  std::string trace_path;       // of the trace that is shown; empty: the engine's own rounds
  bool reduced_motion = false;  // no animation: every duration is 0, and slow motion moves only by step()
  // The newest round of the branch of the chat on show, where later rounds are those of other branches.
  std::optional<size_t> branch_end;

  /// Whether a reply is being written that is not followed, with rounds after the shown one.
  bool behind_live() const;

  /// The round to show; null before the first round, and where its tree was dropped to save memory.
  std::shared_ptr<const RoundRecord> shown() const {
    return playback.shown < log->rounds() ? log->round(playback.shown) : nullptr;
  }
};

/// Applies an event of the engine. The rounds of the engine are collected whatever is shown.
void update(RoundsState& rounds, const Event& event);

/// Applies a command of the user. OpenTrace and WatchDemo do nothing here, as they need the disk: open_trace() and
/// watch_demo() carry them out.
void update(RoundsState& rounds, const RoundsCommand& command);

/// Shows this round of the engine's own as the newest of the branch of the chat on show: follows where it is the newest
/// of all.
void show_branch(RoundsState& rounds, size_t round);
/// Call when a reply is asked for: who saw the end of a branch follows what is written now.
void leave_branch(RoundsState& rounds);

/// Whether the newest round is shown as it is being written: following, and the reply has not ended.
bool is_live(const RoundsState& rounds);

/// Moves the replay on by this many milliseconds.
void advance(RoundsState& rounds, double milliseconds);
/// Whether advance() would change what is shown.
bool moves(const RoundsState& rounds);

/// Begins a new log of the engine's rounds, for another chat or another model. `model` is the loaded one; null: none.
/// A trace that is shown stays.
void begin_live_log(RoundsState& rounds, const ModelReady* model);

/// Shows rounds that are being written, or were by this process, and follows them: the own ones, or those of a served
/// reply. A trace that was shown is closed.
void show_live(RoundsState& rounds, std::shared_ptr<LiveLog> log);

/// Shows another log, paused at its first round. `path` is the trace file it was read from.
void show_log(RoundsState& rounds, std::shared_ptr<RoundLog> log, const std::string& path);

}  // namespace canopy::app
