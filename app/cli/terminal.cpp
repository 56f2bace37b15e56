#include "app/cli/terminal.h"

#include <semaphore.h>

#include <csignal>
#include <cstdio>
#include <iostream>
#include <mutex>
#include <thread>

#include "engine/base/figures.h"
#include "engine/base/posix.h"
#include "engine/base/text.h"

namespace canopy::cli {
namespace {

volatile std::sig_atomic_t pressed = 0;
volatile std::sig_atomic_t continued = 0;
sem_t presses;  // one for each that the watcher has not seen yet

extern "C" void on_interrupt(int) {
  pressed = 1;
  sem_post(&presses);
}

/// Turns the signal into a request to stop: std::stop_source may not be used in a signal handler, sem_post may.
class Watcher {
 public:
  Watcher() {
    sem_init(&presses, 0, 0);
#ifdef _WIN32
    thread_ = std::jthread([this](const std::stop_token& end) { watch(end); });
#else
    // The thread leaves the signal to the others, so that it interrupts the read that waits for input.
    sigset_t interrupt, before;
    sigemptyset(&interrupt);
    sigaddset(&interrupt, SIGINT);
    pthread_sigmask(SIG_BLOCK, &interrupt, &before);
    thread_ = std::jthread([this](const std::stop_token& end) { watch(end); });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
#endif
  }
  ~Watcher() {
    thread_.request_stop();
    sem_post(&presses);
  }

  std::stop_token token() {
    const std::lock_guard lock(mutex_);
    return source_.get_token();
  }

  void forget() {
    const std::lock_guard lock(mutex_);
    pressed = 0;
    if (source_.stop_requested()) source_ = {};
  }

 private:
  void watch(const std::stop_token& end) {
    while (!end.stop_requested()) {
      if (sem_wait(&presses) != 0) continue;
      const std::lock_guard lock(mutex_);
      if (pressed != 0) source_.request_stop();  // else it was forgotten meanwhile
    }
  }

  std::mutex mutex_;
  std::stop_source source_;
  std::jthread thread_;
};

Watcher& watcher() {
  static Watcher watcher;
  return watcher;
}

#ifdef _WIN32

/// On a thread of the console's. The second Ctrl-C ends the program.
bool take_interrupt() {
  if (pressed != 0) return false;
  on_interrupt(0);
  return true;
}

#else

extern "C" void on_continue(int) {
  continued = 1;
}

#endif

}  // namespace

void catch_interrupts() {
  watcher().forget();
#ifdef _WIN32
  on_console_interrupt(take_interrupt);
#else
  struct sigaction action = {};
  action.sa_handler = on_interrupt;
  // SA_RESETHAND: only the first Ctrl-C is caught, the second ends the program. No SA_RESTART: a waiting read returns.
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, nullptr);
#endif
}

bool interrupted() {
  return pressed != 0;
}

std::stop_token interruption() {
  return watcher().token();
}

void forget_interrupt() {
  catch_interrupts();
}

void catch_pauses() {
#ifndef _WIN32
  struct sigaction action = {};
  action.sa_handler = on_continue;
  action.sa_flags = SA_RESTART;
  sigaction(SIGCONT, &action, nullptr);
#endif
}

bool take_pause() {
  const bool was = continued != 0;
  continued = 0;
  return was;
}

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

bool is_terminal() {
  return ::isatty(STDERR_FILENO) == 1;
}

void ProgressLine::show(const LoadProgress& progress) {
  if (!is_terminal()) return;
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

std::string fixed(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

void BenchProgress::show(uint64_t done, uint64_t total) {
  constexpr std::chrono::seconds first_note(2), between_notes(15);
  const Clock::time_point now = Clock::now();
  if (!started_) {
    started_ = true;
    start_ = now;
    noted_ = now + first_note - between_notes;
  }
  const double seconds = std::chrono::duration<double>(now - start_).count();
  const double left =
      done > 0 ? seconds * static_cast<double>(total - done) / static_cast<double>(done) : -1;  // negative: not known
  line_.show({what_, done, total, false, left});
  if (is_terminal() || now - noted_ < between_notes) return;
  noted_ = now;
  note(what_ + ": " + progress_figures(done, total, false, left));
}

}  // namespace canopy::cli
