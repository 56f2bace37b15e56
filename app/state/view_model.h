#pragma once
// The state that the window shows, and the two pure functions that change it: one for events of the engine, one for
// commands of the user. No ImGui, no engine, no clock: everything here is tested without a window.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/base/choices.h"
#include "app/conversation/chat_state.h"
#include "app/conversation/conversation.h"
#include "app/conversation/replay_chat.h"
#include "app/rounds/rounds_state.h"
#include "app/state/ar_check.h"
#include "app/state/recording_state.h"
#include "app/state/ui_command.h"
#include "engine/client/engine_client.h"

namespace canopy::app {

enum class ModelState { none, loading, ready };
enum class ReplyState { idle, reading_prompt, writing, stopping };

/// A failure or a warning the user has not dismissed.
struct Card {
  enum class Action { none, choose_model, load_again, run_again, load_quantized };
  uint64_t id = 0;
  bool warning = false;
  std::string title;
  std::string detail;
  Action action = Action::none;
  bool about_model = true;  // opening another model settles it
};

struct Progress {
  std::string stage;
  uint64_t done = 0;
  uint64_t total = 0;  // 0 = unknown
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

  ModelState model_state = ModelState::none;
  std::string model_path;         // of the last load
  uint32_t superseded_loads = 0;  // cancelled for a newer one, whose last event has not come yet
  Progress loading;
  std::optional<ModelReady> model;  // stays while another one loads

  Conversation messages;  // reads as the path that is shown
  ChatState chat;
  ReplyState reply_state = ReplyState::idle;
  uint64_t reply_id = 0;  // of the reply under way or the last one
  Progress prompt;
  int64_t prompt_since_ms = 0;   // by chat.now_ms: when its first piece was read,
  uint32_t prompt_began_at = 0;  // which ended at this token
  uint32_t context_used = 0;
  uint32_t max_tokens = 512;
  SamplingSettings sampling = chat_sampling();
  std::optional<DecodeMode> drafting;  // none: mode_for() says what suits the device
  uint64_t replies_drawn = 0;          // since the chat or the seed began: reply n draws with seed + n

  RoundsState rounds;
  ReplayChat replay;  // of the trace that is shown
  RecordingState recording;
  CheckState checks;
  CalibrationState calibration;
  ShellState shell;
  ModelsState models;

  std::vector<Card> cards;
  uint64_t last_id = 0;

  bool busy() const { return reply_state != ReplyState::idle; }
  bool can_send() const { return model_state == ModelState::ready && !busy(); }
  const Message* last_reply() const;

  bool replaying() const { return !rounds.trace_path.empty(); }
  /// What the chat shows: the recorded conversation while there is one, else the user's own.
  const Conversation& conversation() const { return replaying() ? replay.conversation() : messages; }
};

/// What a command asks of the world outside the state.
struct Effects {
  std::vector<Command> engine = {};
  bool browse = false;
  std::optional<std::string> clipboard = {};
  std::optional<Conversation> closed = {};        // makes way for another one: to be kept
  std::optional<std::string> trace = {};          // to show
  std::optional<size_t> demo = {};                // to play
  std::optional<ModelSearchRequest> search = {};  // on the disk
};

/// Folds an event of the engine in. Events of a reply that is no longer the current one change nothing.
void update(ViewModel& view, const Event& event);

/// Folds a command of the user in. A command that makes no sense now (sending without a model) changes nothing.
Effects update(ViewModel& view, const UiCommand& command);

/// Brings the recorded conversation to the round that is shown. Call when time has passed.
void follow_playback(ViewModel& view);

/// Shows a warning, or a failure, that did not come from the engine.
void warn(ViewModel& view, const std::string& title, const std::string& detail);
void fail(ViewModel& view, const std::string& title, const std::string& detail);

/// The title of the conversation: the start of its first question.
std::string conversation_title(const ViewModel& view);

/// What people call a model: "SmolLM2-135M-Instruct Q4_1". A GGUF goes by the name of its file, which its user chose;
/// the name inside is whatever its converter was given ("Smollm2 135M 8k Lc100K Mix1 Ep2"). One that was quantized
/// while loading says so: "SmolLM2-135M-Instruct F16 as Q8_0".
std::string model_title(const ModelReady& model);

/// The last component of a path, for messages.
std::string file_name(const std::string& path);

/// "62 / 98 MB, 2 s left" for bytes, "3 of 9" for steps, empty when the total is unknown.
std::string progress_figures(const Progress& progress);

/// What the engine is doing, in words for the status bar.
std::string state_words(const ViewModel& view);

}  // namespace canopy::app
