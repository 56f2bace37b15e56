#pragma once

#include <atomic>
#include <cstdint>
#include <iosfwd>

#include "app/settings/options.h"
#include "engine/client/engine_client.h"

namespace canopy::app {

/// No display: loads, answers the prompt (a built-in one when there is none), prints the text and the statistics,
/// writes the picture. Returns the exit code: 0, or 1 with the reason on err and, when drawing works, in the picture.
int run_offscreen(EngineClient& engine, const AppOptions& options, std::ostream& out, std::ostream& err);

/// Shows a trace with no engine, no display and no model: writes the picture, or the JSON to out without anything of
/// Vulkan. Returns the exit code: 0, or 1 with the reason on err.
int run_replay(const AppOptions& options, std::ostream& out, std::ostream& err);

struct WindowStatistics {
  std::atomic<uint64_t> frames{0};  // drawn; may be read while the window runs
  bool software_device = false;
  double drawing_seconds = 0;  // spent on them, device time included on a software device
};

/// Opens the window and runs until it is closed. Returns the exit code; 1 with the reason on err when no window could
/// be opened or a requested reply failed.
int run_window(EngineClient& engine, const AppOptions& options, std::ostream& err,
               WindowStatistics* statistics = nullptr);

/// Whether a window could be opened at all: a display server is named in the environment.
bool display_present();

}  // namespace canopy::app
