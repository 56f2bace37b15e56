#pragma once
// Rounds that are given to others, with the texts of their replies: of a recording, or copied from the engine's own.

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "app/conversation/message.h"
#include "app/rounds/trace_log.h"

namespace canopy::app {

struct SharedReply {
  std::string question;    // that it answers; empty where it is not known
  Message message;         // its text, and which token of which round wrote what
  size_t first_round = 0;  // in the log
  size_t rounds = 0;
};

struct SharedRun {
  std::shared_ptr<const RoundLog> log;
  TraceHeader header;  // where it was recorded
  std::vector<SharedReply> replies;
  std::string notice;  // what is wrong with the recording, as a sentence; else empty
};

/// All of a recording.
SharedRun run_of(std::shared_ptr<const TraceLog> log);

/// Of work that may take long. Both may be empty.
struct ShareCallbacks {
  std::function<void(size_t done, size_t total)> progress;
  std::stop_token stop;

  /// Reports the progress. Throws cancelled where a stop was requested.
  void step(size_t done, size_t total) const;
};

/// A part of a log's rounds: `count` from `first` on.
struct RoundRange {
  size_t first = 0, count = 0;
};

/// The range that was asked for; without a number of rounds all from `first` on, at most `most`. Throws bad_input
/// naming what there is, and where more than `most` were asked for.
RoundRange round_range(size_t rounds, size_t first, std::optional<size_t> count, size_t most);

}  // namespace canopy::app
