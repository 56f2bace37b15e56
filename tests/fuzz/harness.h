#pragma once
// Functions that all fuzzing harnesses use. A harness is one source file that defines run(). Built with clang it
// becomes a libFuzzer program; in every other build it becomes an ordinary test that runs the corpus (docs/fuzzing.md).

#include <cstddef>
#include <span>
#include <string_view>
#include <utility>

#include "engine/base/error.h"

namespace canopy::fuzz {

/// Gives one input to the code under test. Returns if the input is accepted or properly refused. A property that does
/// not hold ends the process; so does any exception other than Error, which is not caught.
void run(std::string_view input);

/// Calls run() and checks that it takes less processor time than allowed: a second, or several with sanitizers.
void run_within_limits(std::string_view input);

/// Ends the process with the name of the property unless it holds.
void require(bool holds, std::string_view property);

/// Checks a refusal: its kind must be one for a bad file, and its message must be safe to show.
void require_clear(const Error& refusal);

/// Whether `load` accepts its input. If it throws an Error, that must be a clear refusal.
template <class F>
bool accepted(F&& load) {
  try {
    std::forward<F>(load)();
    return true;
  } catch (const Error& refusal) {
    require_clear(refusal);
    return false;
  }
}

/// Reads every byte, so that sanitizers see a view beyond its memory.
void touch(std::span<const std::byte> bytes);
void touch(std::string_view text);

inline std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

}  // namespace canopy::fuzz
