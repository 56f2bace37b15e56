#pragma once
// The last messages of the program, for its Log panel.

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/log.h"

namespace canopy::app {

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
