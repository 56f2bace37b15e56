#pragma once
// Time in the window: which round is shown, and how far its slow motion is. The engine neither waits for it nor knows
// of it. Pure: the caller says how much time passed.

#include <cstddef>
#include <cstdint>

namespace canopy::app {

enum class PlayState : uint8_t {
  following,  // the newest round, always
  playing,    // one after the other, at `speed` times the pace at which they were written
  paused,     // the shown one stays, whatever the engine does
};

/// What slow motion shows of a round, one after the other.
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
  float progress = 1;  // of the phase, 0 ... 1
};

}  // namespace canopy::app
