#pragma once
// Recording replies into a trace: what the user asked for, and the state of the recording. The engine starts and stops
// a recording between two replies only, so the phases `asked` and `ending` may last as long as a reply.

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
  on,      // every reply is written to the file
  ending,  // ends after the reply being written
};

struct RecordingState {
  RecordingPhase phase = RecordingPhase::off;
  std::string path;        // of the running recording or, when it is off, of the last one
  Recording told;          // what the engine last reported
  bool box_shown = false;  // the box in which the file is chosen is open
  std::string suggested;   // path suggested for the next one; empty where there is no folder for it

  bool running() const { return phase != RecordingPhase::off; }
  /// Whether the last one ended well and can be opened.
  bool finished() const { return phase == RecordingPhase::off && told.rounds > 0 && !path.empty(); }
};

struct ShowRecordBox {
  bool shown = true;
};
struct StartRecording {
  std::string path;     // gets the ending of a trace if it has none
  bool redact = false;  // record without texts
  bool dense = false;   // add the draft behind every token at the end, so that what-if is exact
};
struct EndRecording {};

using RecordingCommand = std::variant<ShowRecordBox, StartRecording, EndRecording>;

/// Applies an event of the engine. Returns the reason, as a sentence, when a recording has ended by itself; else empty.
std::string update(RecordingState& state, const Event& event);

/// Applies a command of the user. `possible`: a model is loaded. Returns the command for the engine, if there is one.
std::optional<Command> update(RecordingState& state, const RecordingCommand& command, bool possible);

/// The file that the user's input means: "~/" is the home folder, and a name without an ending gets that of a trace.
std::filesystem::path recording_path(const std::string& typed);

/// The folder of this user's recordings. Empty where it cannot be determined; the warning about the chat folder tells
/// the user why.
std::string user_trace_folder();

/// "canopy-2026-11-22-140512.canopytrace", by local time (milliseconds since 1970, UTC).
std::string recording_name(int64_t now_ms);

}  // namespace canopy::app
