#pragma once
// Checks that an operation throws an Error, and its message.

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "engine/base/error.h"

namespace canopy::test {

/// Runs f and returns the message of the Error it throws; fails the test and returns "" when it throws none.
template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::bad_input);
    return e.what();
  } catch (const std::exception& e) {
    ADD_FAILURE() << "a foreign exception escaped: " << e.what();
    return "";
  }
  ADD_FAILURE() << "nothing was refused";
  return "";
}

/// Runs f, which must throw an Error whose message contains `part`.
template <class F>
void expect_error(std::string_view part, F&& f) {
  const std::string message = error_of(std::forward<F>(f));
  EXPECT_NE(message.find(part), std::string::npos) << "expected: " << part << "\nactual:   " << message;
}

}  // namespace canopy::test
