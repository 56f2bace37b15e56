#pragma once
// The ways to run the application: a window, a picture of a reply, a picture of a recording; and the autopilot that
// carries out what the command line asks for.

#include <atomic>
#include <cstdint>
#include <iosfwd>
#include <memory>
#include <string>
#include <vector>

#include "app/app.h"
#include "app/platform/imgui_context.h"
#include "app/platform/vulkan.h"
#include "app/state/settings.h"
#include "engine/session/engine_client.h"

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
};

/// Opens the window and runs until it is closed. Returns the exit code: 0, or 1 with the reason on err if no window
/// could be opened or a requested reply failed.
int run_window(EngineClient& engine, const AppOptions& options, std::ostream& err,
               WindowStatistics* statistics = nullptr);

/// Whether a window could be opened: the environment names a display server, which Windows always has.
bool display_present();

// Carries out what the command line asks for: settings at the start, a trace to show, a prompt to send.

/// Opens the trace given on the command line, at the given round.
void show_replay(App& app, const AppOptions& options);

/// The settings of the application for these options.
AppSettings settings_from(const AppOptions& options);

/// Carries out the command line by posting commands as a user would: opens the model, sends the prompt, and detects the
/// end of the reply.
class Autopilot {
 public:
  enum class State { loading, waiting_to_send, replying, succeeded, failed };

  /// model: empty: waits until the user opens one. prompts: asked one after the other; none: is done as soon as the
  /// model is loaded.
  Autopilot(App& app, const std::string& model, std::vector<std::string> prompts);

  /// Call after every App::pump().
  void step();
  State state() const { return state_; }
  /// Replies that are there.
  size_t answered() const { return state_ == State::replying ? asked_ - 1 : asked_; }
  bool done() const { return state_ == State::succeeded || state_ == State::failed; }
  /// The failure as a sentence for standard error; empty if there was none.
  std::string failure() const;

 private:
  App& app_;
  std::vector<std::string> prompts_;
  size_t asked_ = 0;  // of them
  bool loads_;        // a model was given
  State state_ = State::loading;
};

/// Draws the application into an image, without display and window system. Its clock advances by the same time in each
/// frame, so that equal states give equal pictures.
class Headless {
 public:
  Headless(EngineClient& engine, const AppSettings& settings, uint32_t width, uint32_t height, bool validate);

  App& app() { return *app_; }
  const UiDevice& device() const { return device_; }
  /// Draws one frame.
  Image frame();
  /// Draws frames until the layout no longer changes; returns the last one.
  Image settled_frame();

 private:
  ImguiContext context_;
  UiDevice device_;
  std::unique_ptr<App> app_;
  OffscreenTarget target_;
};

}  // namespace canopy::app
