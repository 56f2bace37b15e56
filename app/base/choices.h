#pragma once
// The settings that the user can choose: their ranges and defaults. The controls of the window, the command line and
// the settings file all take them from here.

#include "engine/speculation/sampling_settings.h"

namespace canopy::app {

/// projector: black on white with strong colours, as projectors wash out fine differences.
enum class ThemeKind { dark, light, projector };

/// "dark", "light" or "projector", as written in files and on the command line.
constexpr const char* to_string(ThemeKind kind) {
  return kind == ThemeKind::dark ? "dark" : kind == ThemeKind::light ? "light" : "projector";
}
/// The theme that a button leads to: dark, light, projector, and dark again.
constexpr ThemeKind next_theme(ThemeKind kind) {
  return kind == ThemeKind::dark ? ThemeKind::light : kind == ThemeKind::light ? ThemeKind::projector : ThemeKind::dark;
}

/// How the window is arranged: watch for newcomers and stages, with the tree as large as possible; what_if for other
/// devices side by side; lab with all panels.
enum class WindowLayout { watch, what_if, lab };

/// "watch", "what-if" or "lab", as written in files and on the command line.
constexpr const char* to_string(WindowLayout layout) {
  return layout == WindowLayout::watch ? "watch" : layout == WindowLayout::lab ? "lab" : "what-if";
}

// Scale of the interface: 1 is the size in which it was designed.
inline constexpr float kMinScale = 0.75f;
inline constexpr float kMaxScale = 3.0f;

// Sampling settings.
inline constexpr float kMaxTemperature = 2.0f;
inline constexpr float kMinTopP = 0.05f;
inline constexpr float kMaxMinP = 0.5f;
inline constexpr float kMinPenalty = 1.0f, kMaxPenalty = 2.0f;
inline constexpr uint32_t kMaxSeed = 999'999;  // short enough to be read aloud

// Tree budgets: drafted nodes of a tree in mode Tree. kShownBudget is the default: small, as on a slow device trees are
// drafted to be looked at and not for speed.
inline constexpr uint32_t kShownBudget = 8;
inline constexpr uint32_t kLargestTreeBudget = 1024;

// Tokens that a reply may have before it waits to be continued.
inline constexpr uint32_t kMaxTokens = 512, kMostMaxTokens = 1u << 20;

inline constexpr uint32_t kTourSteps = 7;

inline constexpr uint32_t kMostThreads = 4096;         // that a setting names; a processor takes those it has
inline constexpr uint32_t kMostIdleMinutes = 24 * 60;  // after which a model can be released

/// How the window samples tokens by default. The command line is greedy by default, so that its results repeat; in a
/// chat, small models repeat themselves when decoded greedily.
inline SamplingSettings chat_sampling() {
  SamplingSettings settings;
  settings.temperature = 0.5f;
  settings.top_p = 0.9f;
  settings.min_p = 0.05f;
  return settings;
}

}  // namespace canopy::app
