#pragma once
// The application: applies the engine's events and the user's commands to the state, draws it, and carries out what
// they ask of the disk and the system. It is the same for a window, a picture without a display, and tests.

#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "app/export/shared_run.h"
#include "app/shell/shell.h"
#include "app/state/chat_store.h"
#include "app/state/hub_desk.h"
#include "app/state/settings.h"
#include "app/state/view_model.h"
#include "app/state/what_if.h"
#include "app/ui/look.h"

namespace canopy::app {

// What is shared from the window: the work that makes a file, ready for a thread of its own.

/// Takes hold of the rounds that the work needs, so that it may go on beside the window; they are read, and whatever
/// takes longer than a frame is done, when the work is called. Throws bad_input where the rounds cannot be had any
/// more.
ShareJob::Make make_of(const ViewModel& view, ShareKind kind);

/// The system's time in milliseconds since 1970, UTC.
int64_t system_ms();

struct AppSettings {
  ThemeKind theme = ThemeKind::dark;
  std::optional<WindowLayout> layout;  // none: Watch
  bool welcome = false;                // shows the start page until the user chooses, also once a model is ready
  float user_scale = 1.0f;
  float content_scale = 1.0f;  // of the display
  std::string default_model;   // path; empty if there is none
  std::string device;
  QuantizeOnLoad quantize = QuantizeOnLoad::none;
  CacheType kv = CacheType::f16;
  uint32_t max_tokens = kMaxTokens;
  SamplingSettings sampling = chat_sampling();
  bool system_fonts = true;
  std::string settings_file;                   // where changes are saved; empty: nowhere
  std::string engine_key;                      // that engines elsewhere are told
  SavedSettings saved;                         // what was read from that file
  std::string settings_note;                   // what was wrong with the file, as a sentence for the user
  std::string chat_folder;                     // where chats are saved; empty: nowhere
  std::string chat_note;                       // why they are not saved, for the user
  bool reopen_chat = true;                     // shows the chat that was on show last
  std::string trace_folder;                    // default folder of recordings; empty: none
  std::string sweep_folder;                    // where sweeps are kept; empty: nowhere
  std::string layout_file;                     // where the layout is saved; empty: nowhere
  ModelLister model_lister = search_models;    // how models are searched for
  WhatIfMaker what_if = answer_what_if;        // what other devices would make of rounds
  HubPlaceMaker hub = usual_hub_place;         // where models are fetched from
  std::function<int64_t()> clock = system_ms;  // the time that the state lives by
};

class App {
 public:
  /// Needs a current ImGui context, which it configures and uses until destroyed. The engine must outlive it.
  App(EngineClient& engine, const AppSettings& settings);
  ~App();
  App(const App&) = delete;
  App& operator=(const App&) = delete;

  /// Takes the engine's events. True if there were any, so that the window must be drawn.
  bool pump();

  /// Call before ImGui::NewFrame(): updates style and scale.
  void prepare_frame();
  /// Whether there is input that the last frame did not take. Dear ImGui takes only one event of a key in a frame, so
  /// fast typing may be many frames ahead of a slow device.
  bool input_waits() const;

  /// Call between ImGui::NewFrame() and ImGui::Render(): advances the replay by the time of the frame, draws, then runs
  /// the commands.
  void draw();
  /// Whether the next frame will differ without input: rounds are being played, or a panel is animated.
  bool moving() const {
    return moves(view_.rounds) || moves(view_.comparison) || ImGui::GetTime() < look_.drawing_until;
  }

  /// Runs a command as if a panel had posted it.
  void run(const UiCommand& command);

  /// Opens files that were dropped on the window or chosen. Texts go with the next question; of models and recordings
  /// the first is opened, and the others are named in a card.
  void open_paths(const std::vector<std::string>& paths);
  /// Attaches files to the next question, and shows the chat.
  void attach(const std::vector<std::string>& paths);
  /// Seconds until something changes by itself, for pump() to take; infinite where nothing will.
  double seconds_to_change() const;

  const ViewModel& view() const { return view_; }
  /// Whether the engine is working, so that less of the processor is left for drawing.
  bool engine_busy() const {
    return view_.busy() || view_.model_state == ModelState::loading || view_.calibration.busy() ||
           view_.report.busy() || view_.comparison.busy() || view_.checks.check.running() || view_.verify.running ||
           view_.served.busy();
  }
  Colour background() const { return theme(view_.theme).back; }
  void set_content_scale(float scale) { content_scale_ = scale; }
  /// Tells the size of the window at 100%, to be saved.
  void set_window_size(uint32_t width, uint32_t height);
  /// Waits until what is computed for the view on show is there, at most some seconds: pictures of equal states are
  /// equal.
  void await_answers();
  /// Stops a reply that is being written and waits until it has ended, at most so long: then it is kept with its tokens
  /// and its passes, and can be continued at the next start. Call when the window closes.
  void end_reply_within(std::chrono::milliseconds patience);
  /// Saves the settings, the window's size included. Call when the window closes.
  void remember();
  /// Sets the function that opens the system's file dialog. Without one the path box is used.
  /// The second opens it for a text file to attach.
  void set_browse(std::function<void()> browse, std::function<void()> browse_text);
  /// Sets a function to call when pump() has something to take that does not come from the engine; it is called on
  /// other threads.
  void set_wake(const std::function<void()>& wake) {
    what_if_.set_wake(wake);
    chip_.set_wake(wake);
    search_.set_wake(wake);
    sweeps_.set_wake(wake);
    share_.set_wake(wake);
    as_if_.set_wake(wake);
    hub_.set_wake(wake);
  }

 private:
  App(EngineClient& engine, const AppSettings& settings, const LayoutRead& layout);
  /// Dear ImGui belongs to one thread, and the engine's thread must never draw. Throws std::logic_error on another
  /// thread.
  void expect_own_thread() const;
  void keep_settings(bool now);
  std::string suggested_recording() const;
  void save_report(const ReportFile& file);
  void share(const ShareWish& wish);
  /// Takes how far a file to share is. True where there was something new.
  bool take_share_news();
  void read_kept_prompts(const std::string& settings_file);
  void keep_prompts();
  void read_kept_key(const std::string& settings_file);
  void keep_key();
  void ask_for_counts();
  bool post_due_commands();
  void ask_what_if();
  bool take_answers();
  void write_as_if_there(size_t there);
  /// Opens what was written of the recording on show. True where there was something.
  bool show_as_if();
  bool take_sweeps();
  bool take_hub_news();
  bool chats_listed() const;
  /// Looks at what other windows did to the chats, where it is due. True where there was something new.
  bool look_at_chats();
  std::string next_sweep_file() const;
  void keep_layout(const std::optional<SavedLayout>& layout);

  const std::thread::id thread_ = std::this_thread::get_id();
  EngineClient& engine_;
  ViewModel view_;
  CommandSink sink_;
  bool was_moving_ = false, was_racing_ = false;
  ChatDesk desk_;
  int64_t chats_seen_ms_ = 0;  // when the folder of chats was looked at
  std::function<int64_t()> clock_;
  std::string layout_file_, trace_folder_;
  std::string prompts_file_;  // of the system prompts with names; empty: they are not kept
  std::vector<NamedPrompt> kept_prompts_;
  std::string settings_file_, kept_key_;  // of the server, in a file beside the settings
  Shell shell_;
  Look look_;
  float content_scale_;
  std::optional<ThemeKind> styled_theme_;
  std::function<void()> browse_, browse_text_;
  SettingsKeeper keeper_;
  SavedSettings remembered_;
  ModelSearch search_;
  HubDesk hub_;
  WhatIfWorker what_if_, chip_;  // of the view What if, and of the device that Watch speaks of
  AsIfFiles as_if_;
  SweepReader sweeps_;
  std::string sweep_folder_;
  ShareJob share_;
};

}  // namespace canopy::app
