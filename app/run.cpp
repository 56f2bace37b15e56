#include "app/run.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <optional>
#include <ostream>
#include <system_error>
#include <utility>

#include "app/platform/desktop_window.h"
#include "app/platform/system_fonts.h"
#include "app/state/round_log.h"
#include "app/state/view_model.h"

namespace canopy::app {

AppSettings settings_from(const AppOptions& options) {
  AppSettings settings;
  settings.theme = options.theme;
  settings.layout = options.layout;
  settings.user_scale = options.scale;
  settings.device = options.device;
  settings.quantize = options.quantize;
  settings.kv = options.kv;
  settings.max_tokens = options.max_tokens;
  settings.sampling = options.sampling;
  settings.system_fonts = options.system_fonts;
  settings.engine_key = engine_key(options.engine_key_file);
  std::error_code ignored;
  const std::string standard = default_model_path();
  if (!standard.empty() && std::filesystem::exists(standard, ignored)) settings.default_model = standard;
  return settings;
}

void show_replay(App& app, const AppOptions& options) {
  app.run(RoundsCommand(OpenTrace{options.replay}));
  if (options.round) app.run(RoundsCommand(ShowRound{static_cast<size_t>(*options.round)}));
}

Autopilot::Autopilot(App& app, const std::string& model, std::vector<std::string> prompts)
    : app_(app), prompts_(std::move(prompts)), loads_(!model.empty()) {
  if (loads_) app_.run(OpenModel{model});
}

void Autopilot::step() {
  const ViewModel& view = app_.view();
  if (state_ == State::loading) {
    if (view.model_state == ModelState::ready) state_ = prompts_.empty() ? State::succeeded : State::waiting_to_send;
    const bool cancelled = loads_ && view.cards.empty();
    if (view.model_state == ModelState::none && (cancelled || !view.cards.empty())) state_ = State::failed;
  }
  if (state_ == State::waiting_to_send && view.can_send()) {
    app_.run(SendMessage{prompts_[asked_++]});
    state_ = State::replying;
  }
  if (state_ == State::replying && !view.busy()) {
    const Message* reply = view.last_reply();
    const bool failed = !reply || !reply->result || reply->result->reason == FinishReason::failed;
    state_ = failed ? State::failed : asked_ < prompts_.size() ? State::waiting_to_send : State::succeeded;
  }
}

std::string Autopilot::failure() const {
  if (state_ != State::failed) return "";
  for (auto card = app_.view().cards.rbegin(); card != app_.view().cards.rend(); ++card)
    if (!card->warning) return card->title + ". " + card->detail;
  return app_.view().model_state == ModelState::none ? "Loading was cancelled." : "The reply ended early.";
}

namespace {

constexpr float kFrameSeconds = 1.0f / 60;
constexpr int kSettleFrames = 4;

}  // namespace

Headless::Headless(EngineClient& engine, const AppSettings& settings, uint32_t width, uint32_t height, bool validate)
    : device_({{}, validate, {}}), app_(std::make_unique<App>(engine, settings)), target_(device_, {width, height}) {
  ImGuiIO& io = ImGui::GetIO();
  io.DisplaySize = {static_cast<float>(width), static_cast<float>(height)};
  io.BackendPlatformName = "off-screen";
  if (settings.system_fonts) wait_for_system_fonts();  // a picture has no later frame to show them in
}

Image Headless::frame() {
  ImGui::GetIO().DeltaTime = kFrameSeconds;
  app_->prepare_frame();
  target_.new_frame();
  ImGui::NewFrame();
  app_->draw();
  ImGui::Render();
  return target_.render(ImGui::GetDrawData(), app_->background());
}

Image Headless::settled_frame() {
  app_->await_answers();
  for (int i = 1; i < kSettleFrames; ++i) frame();
  return frame();
}

namespace {

/// On this the loop without a window system sleeps until the engine has news.
class WakeSignal {
 public:
  void raise() {
    {
      const std::lock_guard lock(mutex_);
      raised_ = true;
    }
    condition_.notify_one();
  }
  /// Returns when raise() was called since the last wait, or after the time.
  void wait_for(std::chrono::milliseconds time) {
    std::unique_lock lock(mutex_);
    condition_.wait_for(lock, time, [&] { return raised_; });
    raised_ = false;
  }

 private:
  std::mutex mutex_;
  std::condition_variable condition_;
  bool raised_ = false;
};

/// The pass that says most about guessing: of those whose guesses brought most, the one with the largest tree. None
/// where nothing was guessed.
std::optional<size_t> most_telling(const RoundLog& log) {
  std::optional<size_t> best;
  const auto worth = [&](size_t round) { return std::pair(log.summary(round).accepted, log.summary(round).width); };
  for (size_t round = 0; round < log.rounds(); ++round) {
    if (log.summary(round).width > 1 && (!best || worth(round) > worth(*best))) best = round;
  }
  return best;
}

/// What guessing brought in the last passes of a log, as a sentence.
std::string guesses(const RoundLog& log, size_t passes) {
  uint64_t guessed = 0, accepted = 0, emitted = 0;
  passes = std::min(passes, log.rounds());
  for (size_t round = log.rounds() - passes; round < log.rounds(); ++round) {
    const RoundSummary& pass = log.summary(round);
    if (pass.shape != DecodeMode::ar) guessed += pass.width - 1;
    accepted += pass.accepted;
    emitted += pass.emitted;
  }
  if (guessed == 0) return "Nothing was guessed: one token from each pass.";
  char line[200];
  std::snprintf(line, sizeof line, "%llu of %llu guesses became text: %.2f tokens from each pass.",
                static_cast<unsigned long long>(accepted), static_cast<unsigned long long>(guessed),
                static_cast<double>(emitted) / static_cast<double>(passes));
  return line;
}

constexpr const char* kReplyShot = "out/canopy.png";
constexpr auto kPatience = std::chrono::milliseconds(200);

/// Prints what the window would show: progress on err, the growing reply on out.
class Narrator {
 public:
  Narrator(std::ostream& out, std::ostream& err) : out_(out), err_(err) {}

  void tell(const ViewModel& view) {
    if (view.model_state == ModelState::loading && view.loading.stage != stage_) {
      stage_ = view.loading.stage;
      err_ << stage_ << "\n" << std::flush;
    }
    const Message* reply = view.last_reply();
    if (reply && reply->id != reply_) {
      reply_ = reply->id;
      told_ = 0;
    }
    if (!reply || reply->text.size() <= told_) return;
    out_ << std::string_view(reply->text).substr(told_) << std::flush;
    told_ = reply->text.size();
  }

  void statistics(const ViewModel& view) {
    const Message* reply = view.last_reply();
    if (told_ > 0) out_ << "\n";
    if (!reply || !reply->result || !view.model) return;
    const ReplyFinished& r = *reply->result;
    char line[256];
    std::snprintf(
        line, sizeof line,
        "\n%u prompt tokens in %.0f ms (%u reused), %u reply tokens in %.0f ms, %.1f tok/s, context %u of %u\n",
        r.prompt_tokens, r.prefill_ms, r.reused_tokens, r.reply_tokens, r.decode_ms, r.tokens_per_second,
        r.context_used, view.model->context);
    out_ << line;
    out_ << guesses(*view.rounds.log, reply->rounds) << "\n";
    out_ << model_title(*view.model) << " on " << view.model->device << " (" << view.model->driver << ")\n";
  }

 private:
  std::ostream& out_;
  std::ostream& err_;
  std::string stage_;
  uint64_t reply_ = 0;
  size_t told_ = 0;  // of that reply's text
};

int answer(EngineClient& engine, const AppOptions& options, std::ostream& out, std::ostream& err) {
  WakeSignal news;
  engine.set_wake([&] { news.raise(); });
  struct Unhook {
    EngineClient& engine;
    ~Unhook() { engine.set_wake({}); }
  } unhook{engine};
  Headless headless(engine, settings_from(options), options.width, options.height, options.validate);
  std::vector<std::string> prompts = {options.prompt};
  if (options.prompt.empty())
    prompts = {"Explain in two sentences why the sky is blue.", "Repeat your answer word for word."};
  Autopilot pilot(headless.app(), options.model, prompts);
  Narrator narrator(out, err);
  if (options.model.empty()) throw bad_input("There is no model to load: give one with --model.");
  while (true) {
    headless.app().pump();
    narrator.tell(headless.app().view());
    const size_t answered = pilot.answered();
    pilot.step();
    if (pilot.answered() > answered) narrator.statistics(headless.app().view());
    if (pilot.done()) break;
    news.wait_for(kPatience);
  }
  const RoundLog& log = *headless.app().view().rounds.log;
  if (const std::optional<size_t> round = most_telling(log)) headless.app().run(RoundsCommand(ShowRound{*round}));
  const std::string shot = options.shot.empty() ? kReplyShot : options.shot;
  write_png(headless.settled_frame(), shot);
  for (const std::string& message : headless.device().validation_messages()) err << message << "\n";
  if (pilot.state() == Autopilot::State::succeeded && headless.device().validation_messages().empty()) {
    out << "Picture: " << shot << "\n";
    return 0;
  }
  err << pilot.failure() << "\n";
  return 1;
}

}  // namespace

int run_offscreen(EngineClient& engine, const AppOptions& options, std::ostream& out, std::ostream& err) {
  try {
    return answer(engine, options, out, err);
  } catch (const Error& e) {
    err << e.what() << "\n";
    return 1;
  }
}

namespace {

class IdleEngine final : public EngineClient {
 public:
  void post(Command) override {}
  std::vector<Event> poll() override { return {}; }
  void set_wake(std::function<void()>) override {}
  std::vector<DeviceChoice> devices() const override { return {}; }
};

constexpr const char* kReplayShot = "out/replay.png";

int draw(const AppOptions& options, std::ostream& out, std::ostream& err) {
  {
    const TraceLog log(options.replay);  // throws with the text that the window would show on a card
    check_round(options.round.value_or(0), log.rounds());
    if (!log.reader().notice().empty()) err << "warning: " << log.reader().notice() << "\n";
  }
  IdleEngine engine;
  Headless headless(engine, settings_from(options), options.width, options.height, options.validate);
  show_replay(headless.app(), options);
  const std::string shot = options.shot.empty() ? kReplayShot : options.shot;
  write_png(headless.settled_frame(), shot);
  for (const std::string& message : headless.device().validation_messages()) err << message << "\n";
  if (!headless.device().validation_messages().empty()) return 1;
  out << "Picture: " << shot << "\n";
  return 0;
}

}  // namespace

int run_replay(const AppOptions& options, std::ostream& out, std::ostream& err) {
  try {
    if (!options.dump_json) return draw(options, out, err);
    dump_trace(options.replay, options.round, out);
    return 0;
  } catch (const Error& e) {
    err << e.what() << "\n";
    return 1;
  }
}

namespace {

constexpr std::chrono::seconds kLastPass{5};  // that a window which closes waits for the pass under way
constexpr double kLongestSleep = 3600;        // seconds; limits the argument, as an event ends the sleep

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
  if (!options.engine_key_file.empty()) {
    settings.saved.engine_key_file = options.engine_key_file;
  } else if (settings.engine_key.empty()) {
    try {
      settings.engine_key = engine_key(saved.settings.engine_key_file);
    } catch (const Error& e) {
      log_warning("The key of engines elsewhere: " + std::string(e.what()));
    }
  }
  if (options.settings.threads > 0) settings.saved.threads = 0;  // what is named now goes before what was kept
  settings.settings_note = saved.note.empty() ? options.settings_problem : saved.note;
  if (options.keeps_chats) settings.chat_folder = user_chat_folder(settings.chat_note);
  settings.reopen_chat = options.prompt.empty();  // that begins a chat
  if (options.keeps_chats) settings.trace_folder = user_trace_folder();
  if (options.keeps_chats) settings.sweep_folder = user_sweep_folder();
  settings.layout_file = layout_path_beside(options.settings_file);
  settings.content_scale = window.content_scale();
  // Who never opened a model sees what there is, although the one of the set-up is already being loaded.
  settings.welcome = saved.settings.recent.empty() && !options.model_given && options.prompt.empty();
  App app(engine, settings);
  if (settings.default_model.empty()) app.run(HubCommand(LookAtPairs{}));  // for the start page
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
  window.set_redraw([&] {
    app.pump();
    begin_frame(window, app);
    window.end_frame(app.background(), "");
  });
  if (window.has_file_dialog())
    app.set_browse([&] { window.open_file_dialog(FileDialog::Wanted::model); },
                   [&] { window.open_file_dialog(FileDialog::Wanted::text); });
  if (!options.replay.empty()) show_replay(app, options);
  // At the first start, unless the command line already says what to look at.
  const bool asked_for = !options.replay.empty() || !options.prompt.empty() || options.exit_after_reply;
  if (!settings.settings_file.empty() && !saved.settings.tour_seen && !asked_for) app.run(ShellCommand(ShowTour{}));
  const bool load = options.model_given || (options.replay.empty() && !settings.default_model.empty());
  std::vector<std::string> prompts;
  if (!options.prompt.empty()) prompts.push_back(options.prompt);
  Autopilot pilot(app, load ? options.model : "", prompts);
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
    pacer.on_frame(start, window.seconds() - start);
    ++statistics.frames;
    if (leaves && pilot.done()) pacer.on_input();
    if (last) break;
  }
  app.end_reply_within(kLastPass);
  app.remember();
  for (const std::string& message : window.validation_messages()) err << message << "\n";
  if (leaves && pilot.state() == Autopilot::State::failed) err << pilot.failure() << "\n";
  return leaves && (pilot.state() != Autopilot::State::succeeded || !window.validation_messages().empty()) ? 1 : 0;
}

}  // namespace

bool display_present() {
#ifdef _WIN32
  return true;  // programs run on somebody's desktop
#else
  const char* x11 = std::getenv("DISPLAY");
  const char* wayland = std::getenv("WAYLAND_DISPLAY");
  return (x11 && *x11) || (wayland && *wayland);
#endif
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
