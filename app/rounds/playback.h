#pragma once
// The replay of rounds: which round is shown, and how far its slow motion has come. The engine neither waits for it nor
// knows of it. Has no clock of its own: the caller says how many milliseconds have passed.

#include <cstddef>
#include <cstdint>

#include "app/rounds/round_log.h"

namespace canopy::app {

enum class PlayState : uint8_t {
  following,  // always shows the newest round
  playing,    // shows one round after the other, at `speed` times the speed at which they were computed
  paused,     // keeps showing the same round, whatever the engine does
};

/// The phases of a round in slow motion, in their order. An AR round has no draft, so it begins with `verify`.
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

/// Duration of a phase at speed 1, in milliseconds (look/watch.md, "Slow motion"). accepted: drafted tokens that the
/// round accepted; the walk takes a step for each and one more, and as long as that needs.
double phase_ms(Phase phase, uint32_t accepted);
Phase first_phase(DecodeMode shape);

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

}  // namespace canopy::app
