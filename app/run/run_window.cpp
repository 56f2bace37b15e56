#include <algorithm>
#include <cstdlib>
#include <ostream>

#include "app/platform/desktop_window.h"
#include "app/platform/frame_pacer.h"
#include "app/run/autopilot.h"
#include "app/run/run.h"
#include "app/settings/saved_settings.h"

namespace canopy::app {
namespace {

constexpr double kLongestSleep = 3600;  // seconds; limits the argument, as an event ends the sleep

/// Sleeps until the next frame is due; takes events of window and engine meanwhile. False when the window was closed.
bool wait_for_frame(DesktopWindow& window, App& app, FramePacer& pacer, Autopilot& pilot) {
  while (!window.should_close()) {
    if (window.take_input()) pacer.on_input();
    if (window.take_pointer_motion()) pacer.on_pointer();
    if (app.pump()) {
      pacer.on_engine_event(app.engine_busy());
      pacer.on_motion(app.moving());  // a new round may have come that playing waited for
    }
    pilot.step();
    if (const auto files = window.take_files()) {
      files->to_attach ? app.attach(files->paths) : app.open_paths(files->paths);
      pacer.on_input();
    }
    const double wait = window.drawable() ? pacer.wait(window.seconds()) : FramePacer::kNever;
    if (wait <= 0 && window.drawable()) return true;
    window.wait_events(std::min({wait, app.seconds_to_change(), kLongestSleep}));
  }
  return false;
}

/// The options, with saved settings for those that the command line does not give.
AppOptions with_saved(AppOptions options, const SavedSettings& saved) {
  if (!options.theme_given) options.theme = saved.theme;
  if (!options.layout_given) options.layout = saved.layout;
  if (!options.scale_given) options.scale = saved.scale;
  if (!options.size_given) {
    options.width = saved.width;
    options.height = saved.height;
  }
  if (!options.sampling_given) {
    const uint64_t seed = options.sampling.seed;
    options.sampling = saved.sampling;
    options.sampling.seed = seed;
  }
  if (!options.max_tokens_given) options.max_tokens = saved.max_tokens;
  return options;
}

void begin_frame(DesktopWindow& window, App& app) {
  app.set_content_scale(window.content_scale());
  app.set_window_size(window.width_at_100(), window.height_at_100());
  app.prepare_frame();
  window.begin_frame();
  app.draw();
}

/// Takes waiting input in frames that are laid out but not drawn. Otherwise letters would appear one by one on a slow
/// device, long after they were typed. Call between frames.
/// poll: also takes what came during a slow frame, as a key that was released meanwhile would seem held in the next
/// one.
void take_input(DesktopWindow& window, App& app, bool poll) {
  constexpr int kMostFrames = 200;  // about a hundred letters; more waits for the next frame
  constexpr double kSlowSeconds = 0.05;
  for (int i = 0; i < kMostFrames && app.input_waits(); ++i) {
    const double start = window.seconds();
    begin_frame(window, app);
    ImGui::EndFrame();
    if (poll && window.seconds() - start > kSlowSeconds) window.poll_events();
  }
}

void draw_frame(DesktopWindow& window, App& app, const std::string& shot) {
  window.poll_events();  // those that came while the last frame was drawn
  take_input(window, app, true);
  begin_frame(window, app);
  window.end_frame(app.background(), shot);
}

int run(EngineClient& engine, const AppOptions& asked, std::ostream& err, WindowStatistics& statistics) {
  const SettingsRead saved = read_settings(asked.settings_file);
  const AppOptions options = asked.settings_file.empty() ? asked : with_saved(asked, saved.settings);
  DesktopWindow window(options);
  AppSettings settings = settings_from(options);
  settings.settings_file = options.settings_file;
  settings.saved = saved.settings;
  if (options.settings.threads > 0) settings.saved.threads = 0;  // what is named now goes before what was kept
  settings.settings_note = saved.note.empty() ? options.settings_problem : saved.note;
  if (options.keeps_chats) settings.chat_folder = user_chat_folder(settings.chat_note);
  if (options.keeps_chats) settings.trace_folder = user_trace_folder();
  if (options.keeps_chats) settings.sweep_folder = user_sweep_folder();
  settings.layout_file = layout_path_beside(options.settings_file);
  settings.content_scale = window.content_scale();
  // Who never opened a model sees what there is, although the one of the set-up is already being loaded.
  settings.welcome = saved.settings.recent.empty() && !options.model_given && options.prompt.empty();
  App app(engine, settings);
  window.start_drawing();
  struct Unhook {
    EngineClient& engine;
    ~Unhook() { engine.set_wake({}); }
  } unhook{engine};
  engine.set_wake([] { DesktopWindow::wake(); });
  app.set_wake([] { DesktopWindow::wake(); });
  window.set_before_modifier_release([&] {
    if (window.drawable()) take_input(window, app, false);
  });
  if (window.has_file_dialog())
    app.set_browse([&] { window.open_file_dialog(FileDialog::Wanted::model); },
                   [&] { window.open_file_dialog(FileDialog::Wanted::text); });
  if (!options.replay.empty()) show_replay(app, options);
  // At the first start, unless the command line already says what to look at.
  const bool asked_for = !options.replay.empty() || !options.prompt.empty() || options.exit_after_reply;
  if (!settings.settings_file.empty() && !saved.settings.tour_seen && !asked_for) app.run(ShellCommand(ShowTour{}));
  const bool load = options.model_given || (options.replay.empty() && !settings.default_model.empty());
  Autopilot pilot(app, load ? options.model : "", options.prompt);
  FramePacer pacer(window.software_device());
  statistics.software_device = window.software_device();
  int frames_after_end = 0;
  constexpr int kSettle = 4;
  const bool leaves = options.exit_after_reply;
  while (wait_for_frame(window, app, pacer, pilot)) {
    const double start = window.seconds();
    const bool last = leaves && pilot.done() && ++frames_after_end >= kSettle;
    draw_frame(window, app, last && !options.shot.empty() ? options.shot : "");
    if (app.input_waits()) pacer.on_input();
    pacer.on_motion(app.moving());
    const double cost = window.seconds() - start;
    pacer.on_frame(start, cost);
    ++statistics.frames;
    statistics.drawing_seconds += cost;
    if (leaves && pilot.done()) pacer.on_input();
    if (last) break;
  }
  app.remember();
  for (const std::string& message : window.validation_messages()) err << message << "\n";
  if (leaves && pilot.state() == Autopilot::State::failed) err << pilot.failure() << "\n";
  return leaves && (pilot.state() != Autopilot::State::succeeded || !window.validation_messages().empty()) ? 1 : 0;
}

}  // namespace

bool display_present() {
  const char* x11 = std::getenv("DISPLAY");
  const char* wayland = std::getenv("WAYLAND_DISPLAY");
  return (x11 && *x11) || (wayland && *wayland);
}

int run_window(EngineClient& engine, const AppOptions& options, std::ostream& err, WindowStatistics* statistics) {
  WindowStatistics unused;
  try {
    return run(engine, options, err, statistics ? *statistics : unused);
  } catch (const Error& e) {
    err << e.what() << "\n";
    return 1;
  }
}

}  // namespace canopy::app
