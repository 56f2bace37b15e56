#include "app/base/message_log.h"

#include <chrono>

#include "app/base/figures.h"

namespace canopy::app {
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
