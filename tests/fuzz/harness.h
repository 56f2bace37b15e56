#pragma once
// What the fuzzing harnesses share. A harness is one source file that defines run(). Built with clang it becomes a
// libFuzzer program; in every other build it becomes an ordinary test that replays the corpus (docs/fuzzing.md).

#include <cstddef>
#include <span>
#include <string_view>
#include <utility>

#include "engine/base/error.h"

namespace canopy::fuzz {

/// Feeds one input to the code under test. Returns where the input was accepted, or refused as it should be. A broken
/// property ends the process; any exception but Error leaves, which ends it too.
void run(std::string_view input);

/// run(), whose processor time must stay below what one input may take: a second, or several under sanitizers.
void run_within_limits(std::string_view input);

/// Ends the process, naming the property, when it does not hold.
void require(bool holds, std::string_view property);

/// Checks what a refusal owes its reader: a kind that fits a bad file, and a message that is safe to show.
void require_clear(const Error& refusal);

/// Whether `load` accepts what it is given. Refusing is as good, by an Error that is clear.
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

/// Reads every byte, so that a view beyond its memory is seen.
void touch(std::span<const std::byte> bytes);
void touch(std::string_view text);

inline std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

}  // namespace canopy::fuzz
