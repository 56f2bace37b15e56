#include "tests/fuzz/harness.h"

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>

#include "engine/base/text.h"

namespace canopy::fuzz {
namespace {

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CANOPY_UNDER_SANITIZER
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CANOPY_UNDER_SANITIZER
#endif

// Limit of processor time for an input, higher with sanitizers. Processor time does not depend on how busy the machine
// is.
#ifdef CANOPY_UNDER_SANITIZER
constexpr double most_seconds = 10;
#else
constexpr double most_seconds = 1;
#endif

// Limit of a message in bytes: it may have some names from a file, each cut to 256 bytes, or a list of what is
// supported.
constexpr size_t longest_message = 16384;

double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

}  // namespace

void run_within_limits(std::string_view input) {
  const double begin = processor_seconds();
  run(input);
  const double taken = processor_seconds() - begin;
  if (taken > most_seconds) std::fprintf(stderr, "%.2f s for one input; at most %.0f s\n", taken, most_seconds);
  require(taken <= most_seconds, "an input is dealt with in time");
}

void require(bool holds, std::string_view property) {
  if (holds) return;
  std::fprintf(stderr, "property broken: %.*s\n", static_cast<int>(property.size()), property.data());
  std::abort();
}

void require_clear(const Error& refusal) {
  const std::string message = refusal.what();
  if (refusal.kind() != ErrorKind::bad_input || printable(message, longest_message) != message) {
    std::fprintf(stderr, "%s: %s\n", std::string(to_string(refusal.kind())).c_str(), message.c_str());
  }
  require(refusal.kind() == ErrorKind::bad_input, "a damaged file is refused as bad input");
  require(!message.empty(), "a refusal has a message");
  require(printable(message, longest_message) == message, "a message is safe to show");
}

void touch(std::span<const std::byte> bytes) {
  unsigned sum = 0;
  for (const std::byte byte : bytes) sum += static_cast<unsigned>(byte);
  [[maybe_unused]] volatile unsigned sink = sum;
}

void touch(std::string_view text) {
  touch(bytes_of(text));
}

}  // namespace canopy::fuzz
