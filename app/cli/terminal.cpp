#include "app/cli/terminal.h"

#include <unistd.h>

#include <cstdio>
#include <iostream>

#include "engine/base/figures.h"
#include "engine/base/printable.h"

namespace canopy::cli {

void write_reply_text(std::string_view text) {
  static const bool terminal = ::isatty(STDOUT_FILENO) == 1;
  std::cout << (terminal ? printable(text, text.size() * 10 + 16, LineBreaks::keep) : std::string(text)) << std::flush;
}

void write_reply(const ReplyProgress& progress) {
  const std::string_view thought = progress.thought_text();
  if (!thought.empty()) {
    static const bool terminal = ::isatty(STDERR_FILENO) == 1;
    const std::string text = printable(thought, thought.size() * 10 + 16, LineBreaks::keep);
    std::cerr << (terminal ? "\x1b[2m" + text + "\x1b[0m" : text) << std::flush;
  }
  if (!progress.answer_text().empty()) write_reply_text(progress.answer_text());
}

void note(std::string_view message) {
  std::cout << std::flush;  // what was written before comes before it
  std::cerr << printable(message, 4096, LineBreaks::keep) << "\n";
}

void note_seed(std::string_view option, uint64_t seed) {
  note("The seed was drawn: " + std::string(option) + " " + std::to_string(seed) + " repeats it.");
}

void ProgressLine::show(const LoadProgress& progress) {
  if (::isatty(STDERR_FILENO) != 1) return;
  std::string line = progress.stage;
  if (progress.total > 0) {
    line += " " + progress_figures(progress.done, progress.total, progress.in_bytes, progress.seconds_left);
  }
  const size_t columns = line.size();
  if (columns < shown_) line.append(shown_ - columns, ' ');
  std::cerr << "\r" << line << std::flush;
  shown_ = columns;
}

void ProgressLine::clear() {
  if (shown_ > 0) std::cerr << "\r" << std::string(shown_, ' ') << "\r" << std::flush;
  shown_ = 0;
}

bool is_terminal() {
  return ::isatty(STDERR_FILENO) == 1;
}

std::string fixed(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

}  // namespace canopy::cli
