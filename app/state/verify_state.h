#pragma once
// The check of a recording against the loaded model: does plain decoding write its text here? Pure: no engine, no
// clock.

#include <optional>
#include <string>
#include <variant>

#include "engine/client/engine_client.h"

namespace canopy::app {

struct VerifyState {
  std::string path;  // of the recording that is or was checked
  bool running = false;
  VerifyProgress progress;
  std::optional<RecordingVerified> result;  // of the last check that came to its end
};

struct VerifyShown {};  // the recording that is shown
struct StopVerifying {};
using VerifyCommand = std::variant<VerifyShown, StopVerifying>;

struct ViewModel;

/// Applies an event of the engine. True when a check has come to its end.
bool update(VerifyState& state, const Event& event);

/// Applies a command of the user. Returns the command for the engine, if there is one.
std::optional<Command> update_verify(ViewModel& view, const VerifyCommand& command);

/// Why the shown recording cannot be checked now, as a sentence; empty when it can.
std::string verify_obstacle(const ViewModel& view);

/// "Checked here: the text is the one that plain decoding writes, 3 replies, 412 tokens. It was recorded on NVIDIA
/// H200."
std::string verified_words(const RecordingVerified& result);

}  // namespace canopy::app
