// What the engine's thread does to check a recording.

#include <utility>

#include "engine/base/error.h"
#include "engine/session/engine_worker.h"
#include "engine/session/verification_words.h"

namespace canopy {
namespace {

const char* verify_title(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::device_lost: return "The device stopped working";
    case ErrorKind::cancelled: return "The check was cancelled";
    default: return "The recording cannot be checked here";
  }
}

void take_verdict(const ReplyVerdict& verdict, RecordingVerified& told) {
  if (verdict.kind == ReplyVerdict::Kind::not_checked) {
    ++told.skipped;
    return;
  }
  ++told.replies;
  told.tokens += verdict.tokens;
}

}  // namespace

void EngineThread::Worker::verify(const VerifyRecording& command, const std::stop_token& stop) {
  try {
    if (stop.stop_requested()) throw cancelled("The check was cancelled.");
    const Engine& engine = model();
    const TraceReader trace = TraceReader::open(command.path);
    const RecordedIdentity identity = compare_identity(engine, trace, false);
    if (!identity.differences.empty())
      throw bad_input(
          "The recording is of another model than the one that is loaded, and another model writes another "
          "text. " +
          identity.differences.front());
    RecordingVerified told;
    told.path = command.path;
    told.recorded_on = trace.header().device;
    for (size_t i = 0; i < trace.replies().size() && told.difference.empty(); ++i) {
      VerifyCallbacks callbacks;
      callbacks.stop = stop;
      callbacks.progress = [&](size_t done, size_t total) {
        publish(VerifyProgress{i, trace.replies().size(), done, total});
      };
      const ReplyVerdict verdict = verify_reply(engine, trace, i, DecodeMode::ar, callbacks);
      take_verdict(verdict, told);
      if (verdict.kind == ReplyVerdict::Kind::different)
        told.difference = "Reply " + std::to_string(i + 1) + " " + verdict_words(engine, trace, verdict);
    }
    publish(std::move(told));
  } catch (...) {
    failed(std::current_exception(), verify_title, 0);
  }
}

}  // namespace canopy
