#pragma once
// Logging for library code, which never prints: messages go to a sink that the program sets. Without a sink they are
// dropped.

#include <functional>
#include <string_view>

namespace canopy {

enum class LogLevel { debug, info, warning, error };

/// "debug", "info", "warning", "error".
std::string_view to_string(LogLevel level);

/// Receives messages one at a time, from any thread; already passed through printable(), line breaks kept.
using LogSink = std::function<void(LogLevel level, std::string_view message)>;

/// Replaces the sink; messages below `minimum` are dropped. An empty sink turns logging off. No call of the old sink
/// is under way any more when this returns.
void set_log_sink(LogSink sink, LogLevel minimum = LogLevel::info);

/// Whether a message of this level would reach a sink; lets callers skip building expensive messages.
bool log_enabled(LogLevel level);

/// Hands a message to the sink. Messages logged from inside a sink are dropped. Exceptions of the sink are swallowed.
void log(LogLevel level, std::string_view message);

inline void log_debug(std::string_view message) {
  log(LogLevel::debug, message);
}
inline void log_info(std::string_view message) {
  log(LogLevel::info, message);
}
inline void log_warning(std::string_view message) {
  log(LogLevel::warning, message);
}
inline void log_error(std::string_view message) {
  log(LogLevel::error, message);
}

}  // namespace canopy
