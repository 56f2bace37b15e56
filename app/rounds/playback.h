#pragma once
// Time in the window: which round is shown, and how far its slow motion is. The engine neither waits for it nor knows
// of it. Pure: the caller says how much time passed.

#include <cstddef>
#include <cstdint>

#include "app/rounds/round_log.h"

namespace canopy::app {

enum class PlayState : uint8_t {
  following,  // the newest round, always
  playing,    // one after the other, at `speed` times the pace at which they were written
  paused,     // the shown one stays, whatever the engine does
};

/// What slow motion shows of a round, one after the other. An AR round has nothing to fill and to insert, and begins
/// with its pass.
enum class Phase : uint8_t { fill, insert, verify, walk, bonus, commit };
inline constexpr uint32_t kPhases = 6;

inline constexpr double kSlowest = 0.1;
inline constexpr double kFastest = 10;

struct Playback {
  PlayState state = PlayState::following;
  size_t shown = 0;          // round of the log
  double speed = 1;          // kSlowest ... kFastest
  bool slow_motion = false;  // each round in six phases
  Phase phase = Phase::commit;
  float progress = 1;     // of the phase, 0 ... 1
  double elapsed_ms = 0;  // at speed 1, since the shown round or phase began
};

/// Milliseconds of a phase at speed 1 (look.md, section 8: 600 ... 900).
double phase_ms(Phase phase);
Phase first_phase(DecodeMode shape);

/// Lets time pass. Nothing moves while paused; with reduced motion slow motion only moves by step(). A trace that comes
/// to its end pauses there; a live log waits for more.
void advance(Playback& playback, const RoundLog& log, double milliseconds, bool reduced_motion = false);
/// Whether advance() would change anything later without another round: whether frames are needed.
bool moves(const Playback& playback, const RoundLog& log, bool reduced_motion = false);

/// Pauses, or goes on: from the shown round, from the first one at the end of a trace, and with the newest at the end
/// of a live log.
void toggle_pause(Playback& playback, const RoundLog& log);
/// The newest round, from now on; ends slow motion.
void follow(Playback& playback, const RoundLog& log);
/// Pauses, and goes by whole rounds; in slow motion by phases, each shown at its end. Forward out of the middle of a
/// phase goes to its end.
void step(Playback& playback, const RoundLog& log, int by);
/// Pauses on a round, shown whole.
void show(Playback& playback, const RoundLog& log, size_t round);
/// Within kSlowest ... kFastest; what is no number changes nothing. Following has no speed: it becomes playing.
void set_speed(Playback& playback, double speed);
/// On: plays the shown round from its first phase (with reduced motion: pauses on it). Off: the whole round.
void set_slow_motion(Playback& playback, const RoundLog& log, bool on, bool reduced_motion = false);

}  // namespace canopy::app
