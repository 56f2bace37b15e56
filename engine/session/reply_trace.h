#pragma once
// Replies of a loaded model, recorded into a trace file.

#include <filesystem>
#include <span>

#include "engine/session/engine.h"
#include "engine/trace/trace_writer.h"

namespace canopy {

class ReplyTrace {
 public:
  /// Throws what TraceWriter throws. The model must outlive it.
  ReplyTrace(const std::filesystem::path& path, const Engine& model, bool redact = false);

  /// Writes a reply of the model and records it. A disk that fails ends the recording, not the reply.
  Reply record(std::span<const uint32_t> prompt, ReplySettings settings, ReplyCallbacks callbacks);

  /// Why recording stopped, as a sentence; empty while all is well.
  const std::string& problem() const { return writer_.problem(); }
  uint64_t bytes() const { return writer_.bytes(); }
  uint64_t rounds() const { return writer_.rounds(); }

  /// Flushes the file to the disk and closes it; so does the destructor.
  void finish() { writer_.finish(); }

 private:
  const Engine& model_;
  TraceWriter writer_;
};

}  // namespace canopy
