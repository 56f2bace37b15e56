#pragma once
// Rounds that are given to others: those of a recording or of the running engine, and the thread that makes a file of
// them.

#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "app/state/conversation.h"
#include "app/state/live_log.h"
#include "app/state/round_log.h"

namespace canopy::app {

// Rounds that are given to others, with the texts of their replies: of a recording, or copied from the engine's own.

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

// A reply of the running engine as a run to share. Two steps: the window takes hold of it, which needs no time to speak
// of, and a thread then reads its rounds, while the engine and the window go on.

/// A reply that is given to a thread.
struct LiveReply {
  LiveRounds rounds;  // all of the reply so far
  TraceHeader header;
  SharedReply reply;
  size_t shown = 0;  // the round that it was asked for by, among its rounds
};

/// The reply of the chat that holds this round of the log. Throws bad_input where the chat does not have it, or its
/// rounds do not stand together in the log.
LiveReply live_reply(const LiveLog& log, const Conversation& chat, size_t round);

/// Its rounds, read. Throws bad_input where a tree was dropped, and cancelled.
SharedRun read_run(const LiveReply& reply, const ShareCallbacks& callbacks = {});

// Makes one file on a thread of its own, so that the window goes on drawing: an animation takes seconds.

struct ShareNews {
  size_t done = 0, total = 0;
  bool ended = false;
  std::string path;     // that was written; empty where it was not
  std::string problem;  // why not, as a sentence; empty where it was cancelled
};

class ShareJob {
 public:
  /// Gives the file's content.
  using Make = std::function<std::string(const ShareCallbacks& callbacks)>;

  ShareJob();
  /// Cancels what is under way and waits for it: its steps are short.
  ~ShareJob();
  ShareJob(const ShareJob&) = delete;
  ShareJob& operator=(const ShareJob&) = delete;

  /// `wake` is called on the job's thread when take() has something. Call before start().
  void set_wake(std::function<void()> wake);

  /// Begins a file, in a folder that is made where there is none. What was under way is cancelled first.
  void start(std::filesystem::path path, Make make);
  void stop();

  /// What has become known since the last call.
  std::optional<ShareNews> take();

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
  std::jthread thread_;
};

}  // namespace canopy::app
