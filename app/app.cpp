#include "app/app.h"

#include <imgui_internal.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <memory>
#include <span>
#include <stdexcept>
#include <utility>

#include "app/charts/chart_frame.h"
#include "app/export/animation.h"
#include "app/export/recording_page.h"
#include "app/export/round_picture.h"
#include "app/state/chat_update.h"
#include "app/state/conversation.h"
#include "app/state/model_finder.h"
#include "app/state/models.h"
#include "app/state/recording.h"
#include "app/state/round_log.h"
#include "app/ui/script_text.h"
#include "engine/base/error.h"
#include "engine/base/files.h"
#include "engine/text/unicode.h"

namespace canopy::app {
namespace {

constexpr double kLookForFontsSeconds = 0.2;
constexpr PictureSize kShared = {1280, 720}, kMoving = {960, 540};

using ReadRun = std::function<SharedRun(const ShareCallbacks&)>;

/// A page of all rounds, or an animation of some from `round` on. The run may take a while to read, so it is asked for
/// on the thread.
ShareJob::Make make_run(ReadRun read, size_t round, ShareKind kind) {
  return [read = std::move(read), round, kind](const ShareCallbacks& callbacks) {
    const SharedRun run = read(callbacks);
    const size_t rounds = run.log->rounds();
    if (kind == ShareKind::page)
      return recording_page(run, round_range(rounds, 0, std::min(rounds, kMostPageRounds), kMostPageRounds), callbacks);
    // The last rounds, where there are not enough behind this one.
    const size_t first = std::min(round, rounds - std::min(rounds, kAnimatedRounds));
    const RoundRange range = round_range(rounds, first, std::min(kAnimatedRounds, rounds - first), kMostAnimatedRounds);
    return animated_svg(run, range, std::nullopt, kMoving, callbacks);
  };
}

}  // namespace

ShareJob::Make make_of(const ViewModel& view, ShareKind kind) {
  const RoundsState& rounds = view.rounds;
  const size_t round = rounds.playback.shown;
  const ThemeKind theme = view.theme;
  if (kind == ShareKind::png || kind == ShareKind::svg) {
    const auto card = std::make_shared<const RoundCard>(*rounds.log, round, kShared);
    if (kind == ShareKind::svg) return [card](const ShareCallbacks&) { return svg_of_card(*card, std::nullopt); };
    return [card, theme](const ShareCallbacks&) { return png_of_card(*card, theme, 2); };
  }
  if (!rounds.trace_path.empty())
    return make_run(
        [path = rounds.trace_path](const ShareCallbacks&) { return run_of(std::make_shared<const TraceLog>(path)); },
        round, kind);
  const auto log = std::dynamic_pointer_cast<const LiveLog>(rounds.log);
  const auto live =
      std::make_shared<const LiveReply>(live_reply(log ? *log : *rounds.live, view.conversation(), round));
  return make_run([live](const ShareCallbacks& callbacks) { return read_run(*live, callbacks); }, live->shown, kind);
}

int64_t system_ms() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

namespace {

std::string asset_folder(const char* name) {
  const auto folder = find_asset(name);
  return folder ? folder->string() : "";
}

/// What is copied, for a clipboard whose texts end at a byte 0: a sign stands in its place.
std::string clipboard_text(const std::string& text) {
  std::string copied = to_valid_utf8(text);
  for (size_t at = copied.find('\0'); at != std::string::npos; at = copied.find('\0', at))
    copied.replace(at, 1, "\u2400");
  return copied;
}

const char* (*system_clipboard)(ImGuiContext*) = nullptr;

/// The text of the clipboard with U+FFFD for what is not UTF-8. Dear ImGui would take whole letters behind a broken
/// byte for a part of it.
const char* valid_clipboard(ImGuiContext* context) {
  static std::string text;
  const char* given = system_clipboard(context);
  if (!given) return nullptr;
  text = to_valid_utf8(given);
  return text.c_str();
}

/// Puts valid_clipboard() before the function that the window system has set.
void guard_clipboard() {
  auto& get = ImGui::GetPlatformIO().Platform_GetClipboardTextFn;
  if (get == valid_clipboard) return;
  system_clipboard = get;
  get = system_clipboard ? valid_clipboard : nullptr;
}

/// A key that is held pastes once. Dear ImGui would repeat it, also where only a slow frame makes the key seem held.
void paste_once() {
  constexpr ImGuiID kNobody = 1;
  for (const ImGuiKey key : {ImGuiKey_V, ImGuiKey_Insert})
    if (ImGui::GetKeyData(key)->DownDuration > 0) ImGui::SetKeyOwner(key, kNobody, ImGuiInputFlags_LockThisFrame);
}

constexpr int64_t kLookAtChatsMs = 2000;

bool begins_measuring(const UiCommand& command) {
  const auto* comparison = std::get_if<ComparisonCommand>(&command);
  return comparison != nullptr &&
         (std::holds_alternative<StartComparison>(*comparison) || std::holds_alternative<StartSweep>(*comparison));
}

}  // namespace

App::App(EngineClient& engine, const AppSettings& settings)
    : App(engine, settings, read_layout(settings.layout_file)) {}

App::App(EngineClient& engine, const AppSettings& settings, const LayoutRead& layout)
    : engine_(engine),
      desk_(settings.chat_folder),
      clock_(settings.clock),
      layout_file_(settings.layout_file),
      trace_folder_(settings.trace_folder),
      shell_(layout.layout),
      content_scale_(settings.content_scale),
      keeper_(settings.settings_file, settings.saved),
      remembered_(settings.saved),
      search_(settings.model_lister),
      hub_(settings.hub),
      what_if_(settings.what_if),
      chip_(settings.what_if),
      sweeps_(sweep_reader({settings.sweep_folder, asset_folder("prompts"), asset_folder("sweeps")})),
      sweep_folder_(settings.sweep_folder) {
  view_.theme = settings.theme;
  view_.shell.tour.seen = settings.saved.tour_seen;
  view_.shell.tour.step = settings.saved.tour_step;
  view_.shell.layout = settings.layout.value_or(WindowLayout::watch);
  view_.shell.welcome = settings.welcome;
  view_.user_scale = settings.user_scale;
  view_.default_model = settings.default_model;
  view_.quantize = settings.quantize;
  view_.kv = settings.kv;
  view_.max_tokens = settings.max_tokens;
  view_.sampling = settings.sampling;
  view_.drafting = settings.saved.drafting;
  view_.shell.tree_budget = settings.saved.tree_budget;
  view_.draft_sources = settings.saved.draft_sources;
  view_.stop_loops = settings.saved.stop_loops;
  view_.measures_when_idle = settings.saved.measures_when_idle;
  view_.shell.as_if_on = settings.saved.as_if_on;
  view_.models.recent = settings.saved.recent;
  view_.models.device_tests = settings.saved.device_tests;
  view_.rounds.reduced_motion = settings.saved.reduced_motion;
  view_.what_if.own = settings.saved.own_devices;
  view_.what_if.known = predictable_devices(view_.what_if.own);
  view_.thinking = settings.saved.thinking;
  view_.models.threads = settings.saved.threads;
  view_.models.idle_minutes = settings.saved.idle_minutes;
  restore(view_.hub, settings.saved.downloads, view_.last_id);
  view_.served.settings = settings.saved.serve;
  view_.models.engine_key = settings.engine_key;
  if (!settings.settings_note.empty())
    warn(view_, settings.settings_file.empty() ? "Settings cannot be kept" : "The settings were not read",
         settings.settings_note);
  if (!layout.note.empty()) warn(view_, "The layout was not read", layout.note);
  read_kept_prompts(settings.settings_file);
  read_kept_key(settings.settings_file);
  for (Command& each : begin_serving(view_.served)) engine.post(std::move(each));
  view_.shell.closed = layout.layout.closed;
  view_.devices = engine.devices();
  view_.models.device = settings.saved.device;
  view_.device_selector = settings.device.empty() ? selector_of(settings.saved.device, view_.devices) : settings.device;
  view_.chat.now_ms = clock_();
  desk_.begin(view_);
  view_.shell.chat_list = settings.saved.chat_list;
  view_.shell.chat_list_usual = !view_.chat.listings.empty();
  view_.shell.chat_width = settings.saved.chat_width;
  if (settings.reopen_chat) desk_.reopen(view_, settings.saved.last_chat);
  if (!settings.chat_note.empty()) warn(view_, "Chats are not saved", settings.chat_note);
  ImGuiIO& io = ImGui::GetIO();
  io.IniFilename = nullptr;
  io.LogFilename = nullptr;
  io.ConfigFlags |= ImGuiConfigFlags_NavEnableKeyboard | ImGuiConfigFlags_DockingEnable;
  io.ConfigWindowsMoveFromTitleBarOnly = true;  // dragging inside a panel is handled by the panel
  io.ConfigInputTextCursorBlink = false;        // a blinking caret would make an idle window draw
  io.ConfigNavCursorVisibleAuto = true;
  io.UserData = &look_;
  look_.fonts = load_fonts(settings.system_fonts);
  look_.theme = &theme(view_.theme);
}

App::~App() {
  ImGui::GetIO().UserData = nullptr;
}

void App::expect_own_thread() const {
  if (std::this_thread::get_id() != thread_)
    throw std::logic_error("The window was asked to draw by another thread than its own.");
}

bool App::pump() {
  expect_own_thread();
  const std::vector<Event> events = engine_.poll();
  view_.chat.now_ms = clock_();
  for (const Event& event : events) update(view_, event);
  if (std::exchange(view_.checks.stop, false)) engine_.post(StopReply{});
  if (!events.empty()) desk_.keep(view_);
  auto found = search_.take();
  const bool searched = found.has_value();
  if (searched) end_search(view_.models, *std::move(found));
  if (const std::string dense = std::exchange(view_.what_if.dense_trace, {}); dense == view_.rounds.trace_path)
    if (!dense.empty()) open_trace(view_, dense);
  const bool answered = take_answers();
  const bool elsewhere = show_as_if();
  ask_what_if();
  ask_for_counts();
  const bool read = take_sweeps();
  const bool fetched = take_hub_news();
  const bool posted = post_due_commands();
  const bool shared = take_share_news();
  const bool looked = look_at_chats();
  const bool aged = age_note(view_);
  return looked || !events.empty() || searched || answered || elsewhere || read || fetched || posted || shared || aged;
}

/// Nothing is computed for a view that is not on show.
void App::ask_what_if() {
  if (view_.shell.layout == WindowLayout::what_if) {
    if (auto question = next_question(view_.what_if, view_.rounds)) what_if_.ask(*std::move(question));
    return;
  }
  // What a reply that is written on this processor needs is not spent on saying what it would be elsewhere.
  const bool on_processor = view_.busy() && view_.model && view_.model->on_processor();
  if (view_.shell.layout != WindowLayout::watch || on_processor) return;
  if (auto question = next_chip_question(view_.what_if, view_.rounds, as_if_device(view_.shell)))
    chip_.ask(*std::move(question));
}

void App::await_answers() {
  constexpr auto patience = std::chrono::seconds(30);
  constexpr auto pause = std::chrono::milliseconds(2);
  const auto waits = [](const WhatIfAsked& asked) {
    return asked.asked > 0 && !(asked.answer.whole && asked.answer.number == asked.asked);
  };
  const auto end = std::chrono::steady_clock::now() + patience;
  for (pump(); waits(view_.what_if) || waits(view_.what_if.chip); pump()) {
    if (std::chrono::steady_clock::now() > end) return;
    std::this_thread::sleep_for(pause);
  }
}

/// True where there was something new.
bool App::take_answers() {
  auto answer = what_if_.take(), chip = chip_.take();
  if (answer) take_answer(view_.what_if, *std::move(answer));
  if (chip) take_answer(view_.what_if.chip, *std::move(chip));
  return answer || chip;
}

void App::write_as_if_there(size_t there) {
  const auto recording = std::dynamic_pointer_cast<const TraceLog>(view_.rounds.log);
  if (recording == nullptr || there >= view_.what_if.answer.there.size()) return;
  view_.what_if.writing = true;
  as_if_.write({recording, view_.what_if.answer.there[there]});
}

bool App::show_as_if() {
  const std::vector<AsIfAnswer> written = as_if_.take();
  for (const AsIfAnswer& each : written) {
    view_.what_if.writing = false;
    if (!each.problem.empty()) {
      fail(view_, "The trees of that device cannot be shown", each.problem);
    } else if (each.recording.lock() == view_.rounds.log) {  // the user may have gone on to something else
      open_trace(view_, each.file.string());
      view_.shell.layout = WindowLayout::watch;
    }
  }
  return !written.empty();
}

/// Whether the list of chats is on show.
bool App::chats_listed() const {
  if (!view_.chat.kept || view_.shell.page != WindowPage::rounds) return false;
  if (view_.shell.layout == WindowLayout::lab) return !view_.shell.closed.contains("History");
  const float scale = look_.scale > 0 ? look_.scale : 1;
  return view_.shell.layout == WindowLayout::watch &&
         chat_list_shown(view_.shell, ImGui::GetIO().DisplaySize.x / scale);
}

bool App::look_at_chats() {
  if (!chats_listed() || view_.chat.now_ms - chats_seen_ms_ < kLookAtChatsMs) return false;
  chats_seen_ms_ = view_.chat.now_ms;
  return desk_.look(view_);
}

double App::seconds_to_change() const {
  std::optional<int64_t> due = release_due_ms(view_);
  if (const auto measured = remeasure_due_ms(view_)) due = std::min(due.value_or(*measured), *measured);
  if (chats_listed()) due = std::min(due.value_or(chats_seen_ms_ + kLookAtChatsMs), chats_seen_ms_ + kLookAtChatsMs);
  if (!view_.chat.note.empty()) {
    const int64_t since = view_.chat.note == view_.chat.note_seen ? view_.chat.note_since_ms : view_.chat.now_ms;
    due = std::min(due.value_or(since + kNoteMs), since + kNoteMs);
  }
  if (!due) return std::numeric_limits<double>::infinity();
  return static_cast<double>(std::max<int64_t>(0, *due - clock_()) + 10) / 1000;
}

bool App::take_sweeps() {
  std::vector<SweepFileResult> read = sweeps_.take();
  for (SweepFileResult& each : read) end_read(view_.comparison, std::move(each));
  return !read.empty();
}

/// Who is elsewhere in the window is told of downloads that end.
bool App::take_hub_news() {
  std::vector<HubNews> news = hub_.take();
  for (HubNews& each : news) {
    const HubDownload* ended = update(view_.hub, std::move(each));
    if (ended == nullptr) continue;
    const bool elsewhere = view_.shell.page != WindowPage::models;
    const std::string name = ended->name, problem = ended->problem;
    if (!problem.empty()) {
      if (elsewhere) warn(view_, "A model was not fetched", problem);
      continue;
    }
    if (elsewhere) view_.chat.note = "Fetched " + name;
    run(ModelsCommand(LookForModels{}));
  }
  return !news.empty();
}

std::string App::next_sweep_file() const {
  if (sweep_folder_.empty()) return "";
  return new_sweep_file(sweep_folder_, view_.model ? view_.model->device : "").string();
}

/// Posts what is due by time or by what has come from the engine. True when there was something.
bool App::post_due_commands() {
  std::vector<Command> due = take_due_commands(view_);
  for (Command& each : due) engine_.post(std::move(each));
  return !due.empty();
}

/// Asks the engine for the tokens of files that were attached, or for those of another model's vocabulary.
void App::ask_for_counts() {
  for (Command& each : take_count_requests(view_)) engine_.post(std::move(each));
}

void App::open_paths(const std::vector<std::string>& paths) {
  std::vector<std::string> texts, opened, left_out, refused;
  for (const std::string& path : paths) {
    const std::filesystem::path file = path;
    std::error_code ignored;
    if (view_.shell.page == WindowPage::sweep && file.extension() == ".json") {
      if (view_.comparison.sweep)
        run(ComparisonCommand(AddOverlay{path}));
      else
        run(ComparisonCommand(OpenSweep{path}));
      continue;
    }
    const std::string name = file.filename().string();
    const bool other_folder = paths.size() > 1 && std::filesystem::is_directory(file, ignored) && !holds_a_model(file);
    const bool of_model = file.extension() == ".json" ? name == "config.json" || name.ends_with(".index.json")
                                                      : open_obstacle(file).empty();
    if (other_folder) {
      texts.push_back(path);  // attaching says that it is a folder
    } else if (looks_like_calibration(file)) {
      run(OpenModel{path});  // adds to the devices of What if
    } else if (of_model || looks_like_trace(file)) {
      if (std::ranges::find(opened, path) == opened.end()) (opened.empty() ? opened : left_out).push_back(path);
    } else {
      (looks_like_text(path) ? texts : refused).push_back(path);
    }
  }
  attach(texts);  // before a recording is opened, behind which the chat goes on
  for (const std::string& path : opened) run(OpenModel{path});
  const auto names = [](std::span<const std::string> of) {
    std::vector<std::string> all;
    for (const std::string& each : of) all.push_back(file_name(each));
    return listed(all);
  };
  if (!left_out.empty())
    warn(view_, "Only the first of the files was opened",
         "One model or recording is opened at a time: " + names(opened) + ". Left out: " + names(left_out) + ".");
  if (refused.size() == 1) run(OpenModel{refused.front()});
  if (refused.size() > 1)
    fail(view_, "These files cannot be opened",
         open_obstacle(refused.front()) + " Neither can " + names(std::span(refused).subspan(1)) + ".");
}

void App::attach(const std::vector<std::string>& paths) {
  if (paths.empty()) return;
  // The files are shown above what is typed, so the user's own chat must be in view; the layout stays what it is.
  if (view_.shell.welcome) run(ShellCommand(LeaveStart{}));
  if (view_.replaying()) run(RoundsCommand(CloseTrace{}));
  leave_served(view_);
  desk_.attach(view_, paths);
  ask_for_counts();
  if (view_.shell.layout == WindowLayout::lab)
    run(ShellCommand(ShowPanel{"Chat", true}));
  else if (view_.shell.layout != WindowLayout::watch || view_.shell.page != WindowPage::rounds)
    run(ShellCommand(SetLayout{WindowLayout::watch}));
}

void App::prepare_frame() {
  expect_own_thread();
  guard_clipboard();
  const float scale = view_.user_scale * content_scale_;
  shell_.prepare(view_, scale);
  if (system_fonts_arrived()) ++look_.fonts_found;
  if (system_fonts_awaited()) keep_drawing(kLookForFontsSeconds);  // until they are there
  if (styled_theme_ == view_.theme && look_.scale == scale) return;
  look_.theme = &theme(view_.theme);
  look_.scale = scale;
  ImGuiStyle& style = ImGui::GetStyle();
  apply_style(style, *look_.theme, scale);
  apply_chart_style(*look_.theme, scale);
  style.FontScaleMain = view_.user_scale;
  style.FontScaleDpi = content_scale_;
  style.FontSizeBase = font_size(Type::base);
  styled_theme_ = view_.theme;
}

void App::draw() {
  expect_own_thread();
  paste_once();
  // Time in which nothing moved and the window slept does not count for the replay.
  if (was_moving_) advance(view_.rounds, 1000.0 * ImGui::GetIO().DeltaTime);
  if (was_racing_) advance(view_.comparison, 1000.0 * ImGui::GetIO().DeltaTime);
  follow_playback(view_);
  look_.wide_steps = std::exchange(view_.chat.wide_steps, 0);
  shell_.draw(view_, sink_);
  // What is typed stays with the panels until it is sent.
  if (ImGui::GetCurrentContext()->ActiveIdHasBeenEditedThisFrame) {
    note_work(view_);
    if (auto interrupt = interrupt_remeasuring(view_.calibration)) engine_.post(*std::move(interrupt));
  }
  for (const UiCommand& command : sink_.take()) run(command);
  keep_settings(false);
  keep_layout(shell_.layout_changed(view_));
  was_moving_ = moves(view_.rounds);
  was_racing_ = moves(view_.comparison);
}

std::string App::suggested_recording() const {
  if (trace_folder_.empty()) return "";
  return (std::filesystem::path(trace_folder_) / recording_name(view_.chat.now_ms)).string();
}

bool App::input_waits() const {
  return ImGui::GetCurrentContext()->InputEventsQueue.Size > 0;
}

void App::set_window_size(uint32_t width, uint32_t height) {
  remembered_.width = std::clamp(width, kMinSide, kMaxSide);
  remembered_.height = std::clamp(height, kMinSide, kMaxSide);
}

void App::end_reply_within(std::chrono::milliseconds patience) {
  constexpr auto pause = std::chrono::milliseconds(2);
  if (!view_.busy()) return;
  const auto end = std::chrono::steady_clock::now() + patience;
  run(StopWriting{});
  for (pump(); view_.busy() && std::chrono::steady_clock::now() < end; pump()) std::this_thread::sleep_for(pause);
}

void App::remember() {
  keep_settings(true);
  keep_layout(shell_.layout(view_));
}

void App::keep_layout(const std::optional<SavedLayout>& layout) {
  if (layout_file_.empty() || !layout) return;
  try {
    write_layout(layout_file_, *layout);
  } catch (const Error& e) {
    warn(view_, "The layout cannot be saved", e.what());
    layout_file_.clear();  // no further attempts: the failure was reported
  }
}

void App::read_kept_prompts(const std::string& settings_file) {
  if (settings_file.empty()) return;
  prompts_file_ = (std::filesystem::path(settings_file).parent_path() / "prompts.json").string();
  try {
    view_.chat.prompts = kept_prompts_ = read_prompts(prompts_file_);
  } catch (const Error& e) {
    warn(view_, "The system prompts were not read",
         std::string(e.what()) + " The file " + prompts_file_ +
             " stays as it is, and prompts that you save now last until the window is closed.");
    prompts_file_.clear();
  }
}

void App::read_kept_key(const std::string& settings_file) {
  if (settings_file.empty()) return;
  settings_file_ = settings_file;
  try {
    view_.served.key = kept_key_ = read_serve_key(settings_file);
  } catch (const Error& e) {
    warn(view_, "The key of the server was not read", e.what());
    view_.served.settings.on = false;  // else it would be open to all
  }
}

void App::keep_key() {
  if (settings_file_.empty() || view_.served.key == kept_key_) return;
  kept_key_ = view_.served.key;
  try {
    write_serve_key(settings_file_, kept_key_);
  } catch (const Error& e) {
    warn(view_, "The key of the server cannot be saved", e.what());
  }
}

void App::keep_prompts() {
  if (prompts_file_.empty() || view_.chat.prompts == kept_prompts_) return;
  kept_prompts_ = view_.chat.prompts;
  try {
    write_prompts(prompts_file_, kept_prompts_);
  } catch (const Error& e) {
    warn(view_, "The system prompts cannot be saved", e.what());
    prompts_file_.clear();  // no further attempts: the failure was reported
  }
}

void App::keep_settings(bool now) {
  remembered_.theme = view_.theme;
  remembered_.layout = view_.shell.layout;
  remembered_.tour_seen = view_.shell.tour.seen;
  remembered_.tour_step = view_.shell.tour.step;
  remembered_.scale = view_.user_scale;
  remembered_.sampling = view_.sampling;
  remembered_.max_tokens = view_.max_tokens;
  remembered_.drafting = view_.drafting;
  remembered_.tree_budget = view_.shell.tree_budget;
  remembered_.draft_sources = view_.draft_sources;
  remembered_.stop_loops = view_.stop_loops;
  remembered_.measures_when_idle = view_.measures_when_idle;
  remembered_.as_if_on = view_.shell.as_if_on;
  remembered_.own_devices = view_.what_if.own;
  remembered_.recent = view_.models.recent;
  remembered_.device = view_.models.device;
  remembered_.device_tests = view_.models.device_tests;
  remembered_.thinking = view_.thinking;
  remembered_.threads = view_.models.threads;
  remembered_.idle_minutes = view_.models.idle_minutes;
  remembered_.reduced_motion = view_.rounds.reduced_motion;
  remembered_.chat_list = view_.shell.chat_list;
  remembered_.chat_width = view_.shell.chat_width;
  remembered_.downloads = unfinished(view_.hub);
  remembered_.serve = view_.served.settings;
  if (!view_.messages.id.empty()) remembered_.last_chat = view_.messages.id;
  // While a slider is dragged the settings change in every frame: write them once at its end.
  if (!now && (ImGui::IsMouseDown(ImGuiMouseButton_Left) || !keeper_.worth_saving_at_once(remembered_))) return;
  const std::string failure = keeper_.keep(remembered_);
  if (!failure.empty()) warn(view_, "The settings cannot be saved", failure);
}

void App::run(const UiCommand& command) {
  const auto* open = std::get_if<OpenModel>(&command);
  if (open != nullptr && is_server_address(open->path)) open = nullptr;  // no file
  if (open && looks_like_trace(open->path)) {
    // All ways to open a file come here: dialog, path box, dropped file and command line.
    run(OpenTrace{open->path});
    return;
  }
  if (open && looks_like_calibration(open->path)) {
    run(WhatIfCommand(AddCalibration{open->path}));
    return;
  }
  if (open) {
    if (const std::string obstacle = open_obstacle(open->path); !obstacle.empty())
      return fail(view_, "This file cannot be opened", obstacle);
  }
  view_.chat.now_ms = clock_();
  view_.recording.suggested = suggested_recording();
  const auto* recording = std::get_if<RecordingCommand>(&command);
  const auto* served = std::get_if<ServedCommand>(&command);
  if ((recording && std::holds_alternative<StartRecording>(*recording)) ||
      (served && std::holds_alternative<TapeServed>(*served))) {
    std::error_code ignored;  // the engine reports why it cannot write there
    std::filesystem::create_directories(trace_folder_, ignored);
  }
  if (begins_measuring(command)) view_.sweep_file = next_sweep_file();
  Effects effects = update(view_, command);
  desk_.run(view_, command, effects);
  for (Command& each : effects.engine) {
    if (auto* asked = std::get_if<Generate>(&each); asked && (asked->sources & kFromEarlier) != 0) {
      desk_.keep(view_);  // which gives a new chat its name
      asked->chat = view_.messages.id;
    }
    engine_.post(std::move(each));
  }
  ask_for_counts();
  post_due_commands();
  age_note(view_);
  keep_prompts();
  keep_key();
  if (effects.clipboard) ImGui::SetClipboardText(clipboard_text(*effects.clipboard).c_str());
  if (effects.browse && browse_) browse_();
  if (effects.browse_text && browse_text_) browse_text_();
  if (effects.report) save_report(*effects.report);
  share(effects.share);
  if (effects.trace) open_trace(view_, *effects.trace);
  if (effects.search) search_.start(*std::move(effects.search));
  hub_.start(effects.hub);
  if (effects.sweep) sweeps_.ask(*std::move(effects.sweep));
  if (effects.demo) watch_demo(view_, *effects.demo);
  if (effects.as_if) write_as_if_there(*effects.as_if);
  ask_what_if();
}

void App::save_report(const ReportFile& file) {
  try {
    const std::filesystem::path folder = std::filesystem::path(file.path).parent_path();
    std::error_code ignored;  // writing says why it is not possible
    if (!folder.empty()) std::filesystem::create_directories(folder, ignored);
    require_not_in_use(view_, file.path);
    write_file_atomically(file.path, *file.text, PipeWithoutReader::refuse);
    end_save(view_.report, file.path, "");
  } catch (const Error& e) {
    end_save(view_.report, file.path, e.what());
  }
}

void App::share(const ShareWish& wish) {
  if (wish.stop) share_.stop();
  if (!wish.start) return;
  try {
    require_not_in_use(view_, wish.start->path);
    share_.start(wish.start->path, make_of(view_, wish.start->kind));
  } catch (...) {
    end_share(view_.share, "", as_error(std::current_exception()).what());
  }
}

bool App::take_share_news() {
  const auto news = share_.take();
  if (!news) return false;
  if (!news->ended) {
    share_progress(view_.share, news->done, news->total);
    return true;
  }
  end_share(view_.share, news->path, news->problem);
  if (view_.share.box_shown) return true;
  if (!news->path.empty()) view_.chat.note = "Saved " + std::filesystem::path(news->path).filename().string();
  if (!news->problem.empty()) warn(view_, "The file to share was not made", news->problem);
  return true;
}

void App::set_browse(std::function<void()> browse, std::function<void()> browse_text) {
  browse_ = std::move(browse);
  browse_text_ = std::move(browse_text);
  view_.file_dialog_available = static_cast<bool>(browse_);
}

}  // namespace canopy::app
