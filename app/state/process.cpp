#include "app/state/process.h"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <system_error>

#include "app/state/words.h"
#include "engine/base/files.h"
#include "engine/base/posix.h"

namespace canopy::app {

#ifdef _WIN32

void prepare_process() {
  prepare_console();
}

ErrorOutput::ErrorOutput() : seen_(::fcntl(STDERR_FILENO, F_GETFD) >= 0) {}

void ErrorOutput::finish(int exit_code) {
  if (exit_code != 0 && !unseen_.view().empty()) show_message(unseen_.str());
}

#else

ErrorOutput::ErrorOutput() : seen_(true) {}

void ErrorOutput::finish(int) {}

void prepare_process() {
  std::signal(SIGXFSZ, SIG_IGN);
  for (int descriptor = 0; descriptor <= 2; ++descriptor) {
    if (::fcntl(descriptor, F_GETFD) >= 0) continue;
    // open() takes the lowest free number. The wrong direction, so that reading or writing fails as before.
    if (::open("/dev/null", descriptor == 0 ? O_WRONLY : O_RDONLY) != descriptor) return;
  }
}

#endif

StandardOutput::StandardOutput()
    : is_terminal_(::isatty(STDOUT_FILENO) == 1), before_(std::cout.rdbuf(this)), tied_before_(std::cerr.tie(nullptr)) {
  setp(buffer_, buffer_ + sizeof buffer_);
  std::cout.exceptions(std::ios::badbit);  // lets through what is thrown below
}

StandardOutput::~StandardOutput() {
  std::cout.exceptions(std::ios::goodbit);
  std::cout.rdbuf(before_);
  std::cerr.tie(tied_before_);
}

bool StandardOutput::reader_is_gone() const {
  return lost_ == EPIPE;
}

void StandardOutput::finish() {
  if (lost_ == 0) flush_buffer();
}

void StandardOutput::flush_buffer() {
  for (const char* next = pbase(); next < pptr() && lost_ == 0;) {
    const ssize_t written = ::write(STDOUT_FILENO, next, static_cast<size_t>(pptr() - next));
    if (written >= 0) {
      next += written;
    } else if (errno != EINTR) {
      lost_ = errno;
    }
  }
  setp(buffer_, buffer_ + sizeof buffer_);
  if (lost_ == 0) return;
  const std::string why = lost_ == EBADF ? "it is closed" : std::generic_category().message(lost_);
  throw bad_input("Standard output cannot be written: " + why + "." + std::string(write_advice(lost_)));
}

StandardOutput::int_type StandardOutput::overflow(int_type letter) {
  if (lost_ != 0) return traits_type::eof();
  flush_buffer();
  if (!traits_type::eq_int_type(letter, traits_type::eof())) sputc(traits_type::to_char_type(letter));
  return traits_type::not_eof(letter);
}

std::streamsize StandardOutput::xsputn(const char* text, std::streamsize count) {
  for (std::streamsize taken = 0; taken < count; ++taken) {
    if (traits_type::eq_int_type(sputc(text[taken]), traits_type::eof())) return taken;
  }
  if (is_terminal_ && std::string_view(text, static_cast<size_t>(count)).find('\n') != std::string_view::npos) sync();
  return count;
}

int StandardOutput::sync() {
  if (lost_ != 0) return -1;
  flush_buffer();
  return 0;
}

namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// The longest beginning of the text that is allowed (kLongest bytes), without cutting a UTF-8 character.
std::string_view shortened(std::string_view text) {
  if (text.size() <= MessageLog::kLongest) return text;
  size_t end = MessageLog::kLongest;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end);
}

}  // namespace

MessageLog::MessageLog() : start_(now()) {}

void MessageLog::add(LogLevel level, std::string_view text) {
  const std::lock_guard lock(mutex_);
  kept_.push_back({count_++, now() - start_, level, std::string(shortened(text))});
  if (kept_.size() > kKept) kept_.pop_front();
}

uint64_t MessageLog::count() const {
  const std::lock_guard lock(mutex_);
  return count_;
}

std::vector<MessageLog::Message> MessageLog::messages() const {
  const std::lock_guard lock(mutex_);
  return {kept_.begin(), kept_.end()};
}

const std::shared_ptr<MessageLog>& MessageLog::of_process() {
  static const std::shared_ptr<MessageLog> log = std::make_shared<MessageLog>();
  return log;
}

std::string as_text(const std::vector<MessageLog::Message>& messages) {
  std::string text;
  for (const MessageLog::Message& each : messages)
    text += fixed(each.seconds, 2) + " s  " + std::string(to_string(each.level)) + "  " + each.text + "\n";
  return text;
}

}  // namespace canopy::app
