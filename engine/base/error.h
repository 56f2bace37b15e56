#pragma once
// The one exception type of the engine, and the log of library code, which never prints.

#include <exception>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace canopy {

// Errors. A message is a full sentence that says what is wrong, where, the actual value and what is allowed; callers
// add context on the way up ("while loading model.gguf").

enum class ErrorKind {
  bad_input,      // a file, a setting or a request that is wrong: tell the user, carry on
  out_of_memory,  // host or device memory, or a limit of the device
  device_lost,    // the device must be opened again
  unavailable,    // something the machine lacks: a driver, a device, a feature
  cancelled,      // the user asked to stop
};

/// The kind as text for messages, e.g. "bad input".
std::string_view to_string(ErrorKind kind);

class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}

  ErrorKind kind() const { return kind_; }

  /// The same error with "context: " in front of its message.
  Error within(std::string_view context) const { return Error(kind_, std::string(context) + ": " + what()); }

 private:
  ErrorKind kind_;
};

inline Error bad_input(const std::string& message) {
  return Error(ErrorKind::bad_input, message);
}
inline Error out_of_memory(const std::string& message) {
  return Error(ErrorKind::out_of_memory, message);
}
inline Error cancelled(const std::string& message) {
  return Error(ErrorKind::cancelled, message);
}

/// Whatever was thrown, as an Error whose sentence says what could not be had: memory, a thread, a file.
Error as_error(const std::exception_ptr& thrown);

/// " This program may have 629.1 MB of address space (ulimit -v) and has taken 540.2 MB."; empty where it is not
/// limited.
std::string address_space_words();

/// Runs f and adds context to any Error that leaves it.
template <class F>
decltype(auto) with_context(std::string_view context, F&& f) {
  try {
    return std::forward<F>(f)();
  } catch (const Error& e) {
    throw e.within(context);
  }
}

// The log. Messages go to a sink that the program sets; without one they are dropped.

enum class LogLevel { debug, info, warning, error };

/// "debug", "info", "warning", "error".
std::string_view to_string(LogLevel level);

/// Receives messages one at a time, from any thread; already passed through printable(), line breaks kept.
using LogSink = std::function<void(LogLevel level, std::string_view message)>;

/// Replaces the sink; messages below `minimum` are dropped. An empty sink turns logging off. No call of the old sink
/// is under way any more when this returns.
void set_log_sink(LogSink sink, LogLevel minimum = LogLevel::info);

/// Hands a message to the sink. Messages logged from inside a sink are dropped. Exceptions of the sink are swallowed.
void log(LogLevel level, std::string_view message);

inline void log_info(std::string_view message) {
  log(LogLevel::info, message);
}
inline void log_warning(std::string_view message) {
  log(LogLevel::warning, message);
}

}  // namespace canopy
