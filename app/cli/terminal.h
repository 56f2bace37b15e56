#pragma once
// Output on the terminal, replies, notes and progress, and Ctrl-C as a request to end.

#include <chrono>
#include <cstdint>
#include <stop_token>
#include <string>
#include <string_view>

#include "engine/session/engine_client.h"
#include "engine/session/reply.h"

namespace canopy::cli {

// Ctrl-C as a request to end the reply being written and to leave everything in order. Pressed again, it ends the
// program.

constexpr int kInterrupted = 130;  // exit code that shells use for Ctrl-C

/// Treats Ctrl-C as a request from now on. It also interrupts a read that waits for input.
void catch_interrupts();

/// Whether Ctrl-C was pressed since the start or the last forget_interrupt().
bool interrupted();

/// Is stopped when Ctrl-C is pressed. forget_interrupt() makes a new one: a token from before says nothing of later
/// presses.
std::stop_token interruption();

void forget_interrupt();

/// From now on takes note of being stopped and continued, as by Ctrl-Z and fg.
void catch_pauses();
/// Whether the program was continued since the last call.
bool take_pause();

// Output on the terminal: replies, notes and progress.

/// Writes a model's text to standard output at once. On a terminal, control characters are made visible and not sent.
void write_reply_text(std::string_view text);

/// Writes what a reply grew by: the answer to standard output, and thinking that is told apart from it to standard
/// error, dimmed on a terminal.
void write_reply(const ReplyProgress& progress);

/// Writes one line to standard error.
void note(std::string_view message);

/// Tells of a seed that was drawn for an option.
void note_seed(std::string_view option, uint64_t seed);

/// Shows the progress of a load on one line of standard error, if that is a terminal.
class ProgressLine {
 public:
  ~ProgressLine() { clear(); }
  void show(const LoadProgress& progress);
  void clear();

 private:
  size_t shown_ = 0;  // columns of the line
};

/// Whether standard error is a terminal, so that lines may be written over.
bool is_terminal();

/// The value with that many digits after the point: "12.3".
std::string fixed(double value, int digits);

// Shows the progress of a measurement and the time left: on one line of a terminal, elsewhere as a line now and then.

class BenchProgress {
 public:
  explicit BenchProgress(std::string what) : what_(std::move(what)) {}

  /// Shows that `done` of `total` equal parts are done. The time left is estimated from the first call on, so that
  /// warming up does not count.
  void show(uint64_t done, uint64_t total);

  void clear() { line_.clear(); }

 private:
  using Clock = std::chrono::steady_clock;
  std::string what_;
  ProgressLine line_;
  bool started_ = false;
  Clock::time_point start_, noted_;
};

}  // namespace canopy::cli
