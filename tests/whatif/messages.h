#pragma once
// The message of the error that a function throws.

#include <string>

#include "engine/base/error.h"

namespace canopy::test {

/// Empty where it throws no Error of bad input.
template <class F>
std::string message_of(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.kind() == ErrorKind::bad_input ? e.what() : "";
  }
  return "";
}

}  // namespace canopy::test
