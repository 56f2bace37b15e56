#include "app/state/verify_state.h"

#include "app/base/figures.h"
#include "app/state/view_model.h"
#include "engine/base/printable.h"

namespace canopy::app {

bool update(VerifyState& state, const Event& event) {
  if (const auto* done = std::get_if<RecordingVerified>(&event)) {
    // Also after a failure of something else, which looked like that of the check.
    if (done->path != state.path) return false;
    state.running = false;
    state.result = *done;
    return true;
  }
  if (!state.running) return false;
  if (const auto* progress = std::get_if<VerifyProgress>(&event)) {
    state.progress = *progress;
  } else if (const auto* failure = std::get_if<Failure>(&event)) {
    // A failure of a reply does not end a check that waits for that reply, but the loss of the device does.
    if (failure->reply_id == 0 || failure->kind == ErrorKind::device_lost) state.running = false;
  }
  return false;
}

std::optional<Command> update_verify(ViewModel& view, const VerifyCommand& command) {
  VerifyState& state = view.verify;
  if (std::holds_alternative<StopVerifying>(command))
    return state.running ? std::optional<Command>(CancelVerification{}) : std::nullopt;
  if (!verify_obstacle(view).empty()) return std::nullopt;
  state = {view.rounds.trace_path, true, {}, {}};
  return VerifyRecording{state.path};
}

std::string verify_obstacle(const ViewModel& view) {
  if (view.verify.running) return "A recording is being checked";
  if (view.rounds.trace_path.empty()) return "Open a recording first";
  if (view.model_state != ModelState::ready) return "Needs the model that the recording was made with";
  return "";
}

std::string verified_words(const RecordingVerified& result) {
  if (result.replies == 0)
    return "Nothing in the recording can be checked: it has no reply whose prompt and first token were recorded.";
  std::string words = result.difference.empty() ? "Checked here: the text is the one that plain decoding writes, " +
                                                      counted(result.replies, "reply", "replies") + ", " +
                                                      counted(result.tokens, "token", "tokens") + "."
                                                : result.difference;
  if (result.skipped > 0) words += " " + counted(result.skipped, "reply was", "replies were") + " not checked.";
  if (!result.recorded_on.empty()) words += " It was recorded on " + printable(result.recorded_on) + ".";
  return words;
}

}  // namespace canopy::app
