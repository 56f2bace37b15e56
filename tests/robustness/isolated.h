#pragma once
// Runs many cases in child processes, so that a crash, an endless loop, a leak or excessive memory in one of them is a
// failure of that case and does not end the test.

#include <cstdint>
#include <functional>
#include <string>

namespace canopy::test {

/// The result of a case. A `failure` that is not empty fails the test with this text.
struct CaseResult {
  bool accepted = false;  // for statistics: the input was accepted, not refused with a message
  std::string failure;
};

struct CaseLimits {
  double cpu_seconds = 1;                       // processor time, which does not depend on how busy the machine is
  uint64_t memory_bytes = uint64_t{512} << 20;  // above what the process used before its first case
};

struct IsolatedCases {
  uint64_t count = 0;
  uint64_t stride = 1;                                  // every stride-th case is run
  std::function<std::string(uint64_t index)> describe;  // for messages
  std::function<CaseResult(uint64_t index)> run;        // called in a child process, so what it changes is lost
  CaseLimits limits;
};

struct IsolatedTotals {
  uint64_t refused = 0;
  uint64_t accepted = 0;
  double slowest_seconds = 0;
  uint64_t peak_bytes = 0;
};

/// Runs the cases and adds a test failure for each case that fails, throws, dies, exceeds a limit or (under
/// LeakSanitizer) leaks; stops after several. Works without a sanitizer, but finds far more with one.
IsolatedTotals run_isolated(const IsolatedCases& cases);

}  // namespace canopy::test
