#pragma once
// Output on the terminal: replies, notes and progress.

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/client/engine_client.h"
#include "engine/session/reply.h"

namespace canopy::cli {

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

}  // namespace canopy::cli
