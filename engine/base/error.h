#pragma once
// The one exception type of the engine. A message is a full sentence that says what is wrong, where, the actual value
// and what is allowed; callers add context on the way up ("while loading model.gguf").

#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace canopy {

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

}  // namespace canopy
