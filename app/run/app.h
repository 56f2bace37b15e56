#pragma once
// The application behind the windows: folds what the engine says and what the user asks into the view model, and draws
// it. The same for a window, for a picture without a display, and for tests.

#include <functional>
#include <optional>
#include <string>
#include <thread>

#include "app/look/fonts.h"
#include "app/settings/saved_settings.h"
#include "app/shell/shell.h"
#include "app/state/chat_desk.h"
#include "app/state/view_model.h"

namespace canopy::app {

struct AppSettings {
  ThemeKind theme = ThemeKind::dark;
  float user_scale = 1.0f;
  float content_scale = 1.0f;  // of the display
  std::string default_model;   // path; empty when there is none
  std::string device;
  QuantizeOnLoad quantize = QuantizeOnLoad::none;
  uint32_t max_tokens = 512;
  SamplingSettings sampling = chat_sampling();
  bool system_fonts = true;
  std::string settings_file;                 // where changes are remembered; empty: nowhere
  SavedSettings saved;                       // what that file says
  std::string settings_note;                 // what was wrong with it, for the user
  std::string chat_folder;                   // where chats are kept; empty: nowhere
  std::string chat_note;                     // why not, for the user
  std::string trace_folder;                  // where recordings go unless their user says otherwise; empty: nowhere
  std::string layout_file;                   // where the places of the panels are remembered; empty: nowhere
  ModelLister model_lister = search_models;  // how models are looked for
};

class App {
 public:
  /// Needs a current ImGui context, which it configures and keeps for its life. engine must outlive it.
  App(EngineClient& engine, const AppSettings& settings);
  ~App();
  App(const App&) = delete;
  App& operator=(const App&) = delete;

  /// Takes what the engine published. True when there was something, so the window should be drawn.
  bool pump();

  /// Call before ImGui::NewFrame(): brings style and scale up to date.
  void prepare_frame();
  /// Whether input waits that the last frame did not take: Dear ImGui takes a key's press and its release in one frame
  /// each, so that somebody who types fast is frames ahead of a slow device.
  bool input_waits() const;

  /// Call between ImGui::NewFrame() and ImGui::Render(): lets the time of the frame pass, draws, then runs the
  /// commands.
  void draw();
  /// Whether the next frame will differ by itself: rounds are being played, or a panel moves something.
  bool moving() const { return moves(view_.rounds) || ImGui::GetTime() < look_.drawing_until; }

  /// Runs a command as if a panel had posted it.
  void run(const UiCommand& command);

  const ViewModel& view() const { return view_; }
  /// Whether the engine works, which leaves less of the processor to drawing.
  bool engine_busy() const {
    return view_.busy() || view_.model_state == ModelState::loading || view_.calibration.busy() ||
           view_.checks.check.running();
  }
  Colour background() const { return theme(view_.theme).back; }
  void set_content_scale(float scale) { content_scale_ = scale; }
  /// The size of the window at 100%, to be remembered.
  void set_window_size(uint32_t width, uint32_t height);
  /// Saves what is to be remembered, the size included. Call when the window closes.
  void remember();
  /// How to show the system's file dialog; without it the path box takes over.
  void set_browse(std::function<void()> browse);
  /// Called from other threads when pump() has something to take that does not come from the engine.
  void set_wake(std::function<void()> wake) { search_.set_wake(std::move(wake)); }

 private:
  App(EngineClient& engine, const AppSettings& settings, const LayoutRead& layout);
  /// Dear ImGui belongs to one thread; the engine's must never draw. Throws std::logic_error.
  void expect_own_thread() const;
  void keep_settings(bool now);
  std::string suggested_recording() const;
  void keep_layout(const std::optional<SavedLayout>& layout);

  const std::thread::id thread_ = std::this_thread::get_id();
  EngineClient& engine_;
  ViewModel view_;
  CommandSink sink_;
  bool was_moving_ = false;
  ChatDesk desk_;
  std::string layout_file_, trace_folder_;
  Shell shell_;
  Look look_;
  float content_scale_;
  std::optional<ThemeKind> styled_theme_;
  std::function<void()> browse_;
  SettingsKeeper keeper_;
  SavedSettings remembered_;
  ModelSearch search_;
};

}  // namespace canopy::app
