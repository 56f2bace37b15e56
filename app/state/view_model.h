#pragma once
// The state that the window shows, the commands of the user, and the two pure functions that change the state: one for
// events of the engine, one for commands. They use no ImGui, no engine and no clock.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "app/state/calibration.h"
#include "app/state/chat.h"
#include "app/state/comparison.h"
#include "app/state/conversation.h"
#include "app/state/hub.h"
#include "app/state/models.h"
#include "app/state/plain_decoding.h"
#include "app/state/recording.h"
#include "app/state/rounds.h"
#include "app/state/served.h"
#include "app/state/settings.h"
#include "app/state/shell.h"
#include "app/state/what_if.h"
#include "engine/session/engine_client.h"
#include "engine/speculation/ddtree.h"
#include "engine/speculation/round_record.h"
#include "engine/speculation/sampler.h"

namespace canopy::app {

// The commands of the user. Panels only post them; update() carries them out.

struct SendMessage {
  std::string text;
};
struct StopWriting {};
struct NewChat {};
struct RunAgain {};  // writes another answer to the last question
struct OpenModel {
  std::string path;
};
struct LoadQuantized {};  // quantizes the model that was too large, and all later ones that are
struct BrowseModel {};    // opens the system's file dialog
struct CancelLoading {};
struct ChooseDevice {
  std::string selector;
};
struct DismissCard {
  uint64_t id = 0;
};
struct SetTheme {
  ThemeKind theme = ThemeKind::dark;
};
struct SetScale {
  float scale = 1.0f;
};
struct SetSampling {  // for later replies
  SamplingSettings sampling;
  bool restart = false;  // the next reply uses the seed itself, and later ones count on from there
};
struct SetMaxTokens {  // of later replies, and that a Continue adds at most
  uint32_t tokens = kMaxTokens;
};
struct SetDrafting {  // for later replies; none: the default of the device
  std::optional<DecodeMode> mode;
};
struct SetGuessing {  // for later replies: plain decoding, or the mode before it
  bool on = true;
};
struct ForgetEarlierReplies {};  // that guesses may come from

struct AskSource {  // for later replies: whether guesses come from there
  DraftSources source = kFromSuffix;
  bool asked = true;
};
struct ShowHelp {
  bool shown = true;
};
struct CopyText {
  std::string text;
};
struct ShowPathBox {  // shows the box for a path, used where the system has no file dialog
  bool shown = true;
};

using UiCommand =
    std::variant<SendMessage, StopWriting, NewChat, RunAgain, OpenModel, LoadQuantized, BrowseModel, CancelLoading,
                 ChooseDevice, DismissCard, SetTheme, SetScale, SetSampling, SetMaxTokens, SetDrafting, SetGuessing,
                 AskSource, ForgetEarlierReplies, ShowHelp, CopyText, ShowPathBox, CalibrationCommand, ChatCommand,
                 RoundsCommand, ShellCommand, ModelsCommand, RecordingCommand, ReportCommand, ShareCommand,
                 VerifyCommand, CheckCommand, WhatIfCommand, ComparisonCommand, HubCommand, ServedCommand>;

/// Collects the commands of one frame. They are carried out after it, so that no panel sees the state change while it
/// draws.
class CommandSink {
 public:
  void post(UiCommand command) { commands_.push_back(std::move(command)); }
  std::vector<UiCommand> take() { return std::exchange(commands_, {}); }

 private:
  std::vector<UiCommand> commands_;
};

enum class ModelState {
  none,
  loading,
  ready,
  released,  // after idle minutes; the next question loads it again (note_work())
};
enum class ReplyState { idle, reading_prompt, writing, stopping };

/// A failure or a warning that the user has not dismissed.
struct Card {
  enum class Action { none, choose_model, load_again, run_again, load_quantized, drop_oldest };
  uint64_t id = 0;
  bool warning = false;
  std::string title;
  std::string detail;
  Action action = Action::none;
  bool about_model = true;  // dismissed when another model is opened
};

struct Progress {
  std::string stage;
  uint64_t done = 0;
  uint64_t total = 0;  // 0: unknown
  bool in_bytes = false;
  double seconds_left = -1;  // negative when unknown

  /// In [0, 1]; negative when unknown.
  float fraction() const;
};

struct ViewModel {
  ThemeKind theme = ThemeKind::dark;
  float user_scale = 1.0f;  // kMinScale ... kMaxScale
  bool help_shown = false;
  bool path_box_shown = false;
  bool file_dialog_available = false;

  std::vector<DeviceChoice> devices;
  std::string device_selector;  // empty = the best one
  std::string default_model;    // path; empty when the file is not there
  QuantizeOnLoad quantize = QuantizeOnLoad::none;
  CacheType kv = CacheType::f16;

  ModelState model_state = ModelState::none;
  std::string model_path;         // of the last load
  uint32_t superseded_loads = 0;  // cancelled loads whose last event has not come yet
  Progress loading;
  std::optional<ModelReady> model;  // stays set while another one loads, and when it is released
  IdleState idle;

  Conversation messages;  // the user's own chat; iterating it gives the shown path
  ChatState chat;
  ReplyState reply_state = ReplyState::idle;
  uint64_t reply_id = 0;  // of the reply being written or the last one
  Progress prompt;
  int64_t prompt_since_ms = 0;   // in the time of chat.now_ms: when the first piece of the prompt had been read,
  uint32_t prompt_began_at = 0;  // which ended at this token
  uint32_t context_used = 0;
  uint32_t max_tokens = kMaxTokens;  // of a reply, 1 ... kMostMaxTokens; more after Continue
  SamplingSettings sampling = chat_sampling();
  std::optional<DecodeMode> drafting;          // none: kUsualMode
  bool stop_loops = true;                      // later replies that repeat themselves end
  bool measures_when_idle = true;              // what passes cost, where that was measured badly or has changed
  std::optional<DecodeMode> guessed_as;        // what `drafting` was before plain decoding was chosen
  DraftSources draft_sources = kUsualSources;  // that later replies ask, where they are there
  std::optional<bool> thinking;                // of later replies; none: as the model's template does by itself
  uint64_t replies_drawn = 0;                  // since the chat or the seed was begun: reply n uses seed + n

  RoundsState rounds;
  ReplayChat replay;  // conversation of the trace that is shown
  RecordingState recording;
  ServedState served;
  CheckState checks;
  ArState ar;
  CalibrationState calibration;
  ReportState report;
  ComparisonState comparison;
  std::string sweep_file;  // that the next measurement is written to; empty: it is kept nowhere
  ShareState share;
  VerifyState verify;
  ShellState shell;
  WhatIfState what_if;
  ModelsState models;
  HubState hub;

  std::vector<Card> cards;
  uint64_t last_id = 0;

  bool busy() const { return reply_state != ReplyState::idle; }
  bool can_send() const {
    return (model_state == ModelState::ready || model_state == ModelState::released) && !busy() && !comparison.busy();
  }
  const Message* last_reply() const;
  /// Whether a DFlash drafter is loaded with the model. Without one, guesses come from the text alone.
  bool has_drafter() const { return model && !model->drafter.empty(); }

  bool replaying() const { return !rounds.trace_path.empty(); }
  /// The served reply that is on show; null: none is.
  const ServedReply* watched() const { return served.watched != 0 ? served.find(served.watched) : nullptr; }
  /// Whether the user's own chat is on show, and not a trace or what a client asked for.
  bool own_chat() const { return !replaying() && served.watched == 0; }
  /// The conversation that the chat panel shows: that of a trace or of a client while it is shown, else the user's own.
  const Conversation& conversation() const {
    if (replaying()) return replay.conversation();
    const ServedReply* other = watched();
    return other != nullptr ? other->chat : messages;
  }
};

/// Requests of a command to everything outside the state: the engine, the disk and the system.
struct Effects {
  std::vector<Command> engine = {};
  bool browse = false;
  std::optional<std::string> clipboard = {};
  std::optional<Conversation> closed = {};            // conversation that is no longer shown; to be saved
  std::shared_ptr<const LiveLog> closed_rounds = {};  // its rounds
  std::optional<std::string> trace = {};              // path of a trace to show
  std::optional<size_t> demo = {};                    // index of a demo to play
  std::optional<ModelSearchRequest> search = {};      // search of the disk to start
  bool browse_text = false;                           // open the dialog for a text file to attach
  std::optional<ReportFile> report = {};              // to be written
  std::optional<size_t> as_if = {};                   // device of the answer whose trees are to be shown
  std::optional<SweepFileRequest> sweep = {};         // file of a sweep to read
  ShareWish share = {};                               // a file to be made on a thread of its own
  HubWish hub = {};                                   // what the hub's threads are to do
};

/// Applies an event of the engine. Events of a reply that is no longer the current one change nothing.
void update(ViewModel& view, const Event& event);

/// Applies a command of the user. A command that is not allowed now, such as sending without a model, changes nothing.
Effects update(ViewModel& view, const UiCommand& command);

/// Whether the loaded pair can be asked for drafts behind every token of the recording on show.
bool can_make_dense(const ViewModel& view);

/// Shows that the model at that path is being loaded, in place of what was said of the one before.
void begin_load(ViewModel& view, const std::string& path);

/// Shows the recorded conversation up to the shown round. Call after time has passed.
void follow_playback(ViewModel& view);

/// Adds a card, in place of one with the same text.
void add_card(ViewModel& view, Card card);
/// Shows a warning or a failure that did not come from the engine.
void warn(ViewModel& view, const std::string& title, const std::string& detail);
void fail(ViewModel& view, const std::string& title, const std::string& detail);

/// Why the device cannot be measured now, as a sentence without its full stop; empty where it can.
std::string report_obstacle(const ViewModel& view);

/// The name of a model for the user, as model_name() gives it. A model quantized while loading says so:
/// "SmolLM2-135M-Instruct F16 as Q8_0".
std::string model_title(const ModelReady& model);

/// Throws bad_input where saving something as `target` would overwrite the recording that is shown, or the model or
/// the drafter that is loaded.
void require_not_in_use(const ViewModel& view, const std::filesystem::path& target);

/// The last component of a path, for messages.
std::string file_name(const std::string& path);

/// "62 / 98 MB, 2 s left" for bytes, "3 of 9" for steps, empty when the total is unknown.
std::string progress_figures(const Progress& progress);

/// The engine's present activity, as text for the status bar.
std::string state_words(const ViewModel& view);

// Work that takes time and can be cancelled: a load, reading a prompt, a measurement, the check of a recording. Pure.

struct Work {
  Progress progress;
  UiCommand cancel;
};

/// What the engine works on now; nothing while it writes or rests.
std::optional<Work> work_under_way(const ViewModel& view);

/// The same of a recording alone: its check, or the drafts behind every token of it.
std::optional<Work> recording_work(const ViewModel& view);

}  // namespace canopy::app
