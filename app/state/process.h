#pragma once
// What both programs set up before anything else: signals, the standard descriptors and standard output, and where
// messages go, to standard error and to the log that the window shows.

#include <cstdint>
#include <deque>
#include <iostream>
#include <memory>
#include <mutex>
#include <ostream>
#include <sstream>
#include <streambuf>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/error.h"

namespace canopy::app {

// Signals, the standard descriptors, and standard output whose loss is an error.

/// Ignores SIGXFSZ, so that a file beyond the limit of sizes is an error with a message. Descriptors 0 to 2 that are
/// closed become ones that can neither be read nor written as they should: otherwise the next file that is opened would
/// take their number, and get what is meant for standard output.
void prepare_process();

/// Where a program with a window says what went wrong: standard error. On Windows it may have none, as it then has no
/// console either; what was written is shown in a box of the system's at the end, if the program failed.
class ErrorOutput {
 public:
  ErrorOutput();
  std::ostream& stream() { return seen_ ? std::cerr : unseen_; }
  /// Before the program ends with this code.
  void finish(int exit_code);

 private:
  bool seen_;
  std::ostringstream unseen_;
};

/// While it lives, std::cout writes to descriptor 1, and throws an Error where that fails: a full disk, a closed
/// descriptor. std::cerr no longer flushes std::cout, as messages may come from other threads and from destructors.
class StandardOutput : std::streambuf {
 public:
  StandardOutput();
  ~StandardOutput() override;
  StandardOutput(const StandardOutput&) = delete;
  StandardOutput& operator=(const StandardOutput&) = delete;

  /// Writes what is held back. Throws where that is not possible.
  void finish();

  /// Whether something was lost because its reader had enough, as `head` has: nothing that needs a message.
  bool reader_is_gone() const;

 protected:
  int_type overflow(int_type letter) override;
  std::streamsize xsputn(const char* text, std::streamsize count) override;
  int sync() override;

 private:
  void flush_buffer();

  char buffer_[1 << 14];
  bool is_terminal_;  // every line is written at once
  int lost_ = 0;      // errno of the write that failed; nothing is written any more
  std::streambuf* before_;
  std::ostream* tied_before_;
};

// The log sink of a program: the engine's messages go to standard error.

/// Sends the engine's warnings and errors to standard error as "PROGRAM: warning: …", those of the Vulkan validation
/// layer (CANOPY_VALIDATION=core or sync) included. `also` receives every message, those of level info too.
inline void log_to_stderr(std::string program, LogSink also = {}) {
  const LogLevel least = also ? LogLevel::info : LogLevel::warning;
  set_log_sink(
      [program = std::move(program), also = std::move(also)](LogLevel level, std::string_view message) {
        if (also) also(level, message);
        if (level < LogLevel::warning) return;
        std::string line = program + ": " + std::string(to_string(level)) + ": " + std::string(message) + "\n";
        std::cerr << line << std::flush;  // written at once, as other threads write to standard error too
      },
      least);
}

// The last messages of the program, for its Log panel.

/// Thread-safe: the engine writes, the window reads.
class MessageLog {
 public:
  static constexpr size_t kKept = 1000;         // messages
  static constexpr size_t kLongest = 8 * 1024;  // bytes of one; the rest is cut off

  struct Message {
    uint64_t number = 0;  // from 0, of all there ever were
    double seconds = 0;   // since the log was made
    LogLevel level = LogLevel::info;
    std::string text;
  };

  MessageLog();

  void add(LogLevel level, std::string_view text);
  /// How many messages there ever were, those no longer kept included. While this number stays the same, nothing is
  /// new.
  uint64_t count() const;
  /// The messages that are still kept, oldest first.
  std::vector<Message> messages() const;

  /// The one log of this process. It is shared because log sinks belong to the process too.
  static const std::shared_ptr<MessageLog>& of_process();

 private:
  mutable std::mutex mutex_;
  std::deque<Message> kept_;
  uint64_t count_ = 0;
  double start_ = 0;
};

/// One line for each message: "12.34 s  warning  text".
std::string as_text(const std::vector<MessageLog::Message>& messages);

}  // namespace canopy::app
