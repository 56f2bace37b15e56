#include "app/state/recording_state.h"

#include <ctime>
#include "app/conversation/export_path.h"
#include "engine/base/error.h"
#include "engine/base/paths.h"
#include "engine/trace/trace_format.h"

namespace canopy::app {
namespace {

std::string take(RecordingState& state, const Recording& event) {
  const bool ran = state.running();
  state.told = event;
  if (event.active) {
    if (state.phase != RecordingPhase::ending) state.phase = RecordingPhase::on;
    return "";
  }
  state.phase = RecordingPhase::off;
  return ran ? event.problem : "";
}

bool is_end_of_asking(const RecordingState& state, const Failure& event) {
  // A recording that cannot begin is reported as a failure without a reply. If it was another command that failed, the
  // Recording event that follows corrects the phase.
  return state.phase == RecordingPhase::asked && event.reply_id == 0;
}

std::optional<Command> start(RecordingState& state, const StartRecording& command) {
  state.box_shown = false;
  state.phase = RecordingPhase::asked;
  state.path = recording_path(command.path).string();
  state.told = {};
  return RecordTrace{state.path, command.redact, command.dense && !command.redact};
}

}  // namespace

std::string update(RecordingState& state, const Event& event) {
  if (const auto* recording = std::get_if<Recording>(&event)) return take(state, *recording);
  if (const auto* failure = std::get_if<Failure>(&event); failure && is_end_of_asking(state, *failure)) {
    state.phase = RecordingPhase::off;
    state.path.clear();
  }
  // Loading another model ends the recording, also one that had not begun yet.
  if (std::holds_alternative<ModelReady>(event) && state.phase == RecordingPhase::ending)
    state.phase = RecordingPhase::off;
  return "";
}

std::optional<Command> update(RecordingState& state, const RecordingCommand& command, bool possible) {
  if (const auto* show = std::get_if<ShowRecordBox>(&command)) state.box_shown = show->shown && possible;
  if (const auto* begin = std::get_if<StartRecording>(&command))
    return possible && !state.running() && !begin->path.empty() ? start(state, *begin) : std::nullopt;
  if (std::holds_alternative<EndRecording>(command) && state.running() && state.phase != RecordingPhase::ending) {
    state.phase = RecordingPhase::ending;
    return StopRecording{};
  }
  return std::nullopt;
}

std::filesystem::path recording_path(const std::string& typed) {
  std::filesystem::path path = typed_path(typed);
  if (!path.has_extension()) path += trace::extension;
  return path;
}

std::string user_trace_folder() {
  try {
    return (data_dir() / "traces").string();
  } catch (const Error&) {
    return "";
  }
}

std::string recording_name(int64_t now_ms) {
  const std::time_t seconds = now_ms / 1000;
  std::tm parts = {};
  char text[48] = "canopy";
  if (::localtime_r(&seconds, &parts)) std::strftime(text, sizeof text, "canopy-%Y-%m-%d-%H%M%S", &parts);
  return std::string(text) + std::string(trace::extension);
}

}  // namespace canopy::app
