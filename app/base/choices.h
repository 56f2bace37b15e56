#pragma once
// What the user can choose, how far, and what is chosen unless they say otherwise: the same for controls, for the
// command line and for what is remembered.

#include "engine/speculation/sampling_settings.h"

namespace canopy::app {

enum class ThemeKind { dark, light };

// Of the interface; 1 is the size of the design.
inline constexpr float kMinScale = 0.75f;
inline constexpr float kMaxScale = 3.0f;

// How tokens are drawn.
inline constexpr float kMaxTemperature = 2.0f;
inline constexpr float kMinTopP = 0.05f;
inline constexpr float kMaxMinP = 0.5f;
inline constexpr float kMinPenalty = 1.0f, kMaxPenalty = 2.0f;
inline constexpr uint32_t kMaxSeed = 999'999;  // short enough to be read aloud

// Nodes of a tree in mode Tree. kShownBudget: of the trees that a slow device draws to show them.
inline constexpr uint32_t kShownBudget = 8;
inline constexpr uint32_t kLargestTreeBudget = 1024;

/// How the window draws tokens. The command line's default is greedy, for results that repeat; in a chat, small models
/// repeat themselves when decoded greedily.
inline SamplingSettings chat_sampling() {
  SamplingSettings settings;
  settings.temperature = 0.5f;
  settings.top_p = 0.9f;
  settings.min_p = 0.05f;
  return settings;
}

}  // namespace canopy::app
