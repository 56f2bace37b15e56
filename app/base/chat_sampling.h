#pragma once
// How the window draws tokens unless its user says otherwise. The command line's default is greedy, for results that
// repeat; in a chat, small models repeat themselves when decoded greedily.

#include "engine/speculation/sampling_settings.h"

namespace canopy::app {

// What the controls and the options of the program allow.
inline constexpr float kMaxTemperature = 2.0f;
inline constexpr float kMinTopP = 0.05f;
inline constexpr float kMaxMinP = 0.5f;
inline constexpr float kMinPenalty = 1.0f, kMaxPenalty = 2.0f;
inline constexpr uint32_t kMaxSeed = 999'999;  // short enough to be read aloud

inline SamplingSettings chat_sampling() {
  SamplingSettings settings;
  settings.temperature = 0.5f;
  settings.top_p = 0.9f;
  settings.min_p = 0.05f;
  return settings;
}

}  // namespace canopy::app
