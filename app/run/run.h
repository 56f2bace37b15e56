#pragma once

#include <atomic>
#include <cstdint>
#include <iosfwd>

#include "app/settings/options.h"
#include "engine/client/engine_client.h"

namespace canopy::app {

/// Runs without a display: loads the model, answers the prompt (a built-in one if there is none), prints text and
/// statistics, writes the picture. Returns the exit code: 0, or 1 with the reason on err and, if drawing works, in the
/// picture.
int run_offscreen(EngineClient& engine, const AppOptions& options, std::ostream& out, std::ostream& err);

/// Shows a trace without engine, display and model: writes the picture, or the JSON to `out`, which needs no Vulkan.
/// Returns the exit code: 0, or 1 with the reason on err.
int run_replay(const AppOptions& options, std::ostream& out, std::ostream& err);

struct WindowStatistics {
  std::atomic<uint64_t> frames{0};  // frames drawn so far; may be read while the window runs
  bool software_device = false;
  double drawing_seconds = 0;  // time spent on them, device time included on a software device
};

/// Opens the window and runs until it is closed. Returns the exit code: 0, or 1 with the reason on err if no window
/// could be opened or a requested reply failed.
int run_window(EngineClient& engine, const AppOptions& options, std::ostream& err,
               WindowStatistics* statistics = nullptr);

/// Whether a window could be opened: the environment names a display server.
bool display_present();

}  // namespace canopy::app
