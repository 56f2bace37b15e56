#pragma once
// Recording what the engine writes into a trace: what was asked for, and how it stands. The engine takes such a command
// between two replies, so that "asked" may last as long as one does.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <variant>

#include "engine/client/engine_client.h"

namespace canopy::app {

enum class RecordingPhase {
  off,
  asked,   // the engine has not begun yet
  on,      // every reply goes into the file
  ending,  // after the reply under way
};

struct RecordingState {
  RecordingPhase phase = RecordingPhase::off;
  std::string path;        // of the recording under way or, when it is off, of the last one
  Recording told;          // what the engine said last
  bool box_shown = false;  // where the file is chosen
  std::string suggested;   // a path for the next one; empty where there is no folder for it

  bool running() const { return phase != RecordingPhase::off; }
  /// Whether the last one ended well and can be opened.
  bool finished() const { return phase == RecordingPhase::off && told.rounds > 0 && !path.empty(); }
};

struct ShowRecordBox {
  bool shown = true;
};
struct StartRecording {
  std::string path;     // gets the ending of a trace where it has none
  bool redact = false;  // without texts
};
struct EndRecording {};

using RecordingCommand = std::variant<ShowRecordBox, StartRecording, EndRecording>;

/// Folds an event of the engine in. Returns why a recording ended by itself, as a sentence; empty otherwise.
std::string update(RecordingState& state, const Event& event);

/// Folds a command of the user in; what the engine is to be told. `possible`: a model is there.
std::optional<Command> update(RecordingState& state, const RecordingCommand& command, bool possible);

/// The file that a typed path means: "~/" is the home folder, and a name without an ending gets that of a trace.
std::filesystem::path recording_path(const std::string& typed);

/// Where this user's recordings go. Empty where there can be no such folder; the chats say why.
std::string user_trace_folder();

/// "canopy-2026-11-22-140512.canopytrace", by local time (milliseconds since 1970, UTC).
std::string recording_name(int64_t now_ms);

}  // namespace canopy::app
