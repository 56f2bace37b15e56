#pragma once
// Runs many cases in child processes, so that a crash, an endless loop, a leak or a flood of memory in one of them is a
// named failure of that case and not the end of the test.

#include <cstdint>
#include <functional>
#include <string>

namespace canopy::test {

/// What a case came to. A `failure` that is not empty fails the test with these words.
struct CaseResult {
  bool accepted = false;  // for the statistics: the input was taken, and not refused with a message
  std::string failure;
};

struct CaseLimits {
  double cpu_seconds = 1;                       // of processor time: a busy or paused machine does not count
  uint64_t memory_bytes = uint64_t{512} << 20;  // above what the process had before its first case
};

struct IsolatedCases {
  uint64_t count = 0;
  uint64_t stride = 1;                                  // every stride-th case is run
  std::function<std::string(uint64_t index)> describe;  // for messages
  std::function<CaseResult(uint64_t index)> run;        // in a child; what it changes is lost
  CaseLimits limits;
};

struct IsolatedTotals {
  uint64_t refused = 0;
  uint64_t accepted = 0;
  double slowest_seconds = 0;
  uint64_t peak_bytes = 0;
};

/// Runs the cases and adds a test failure for each one that fails, throws something else than a CaseResult, dies,
/// passes a limit or (under LeakSanitizer) leaks; gives up after some. Needs no sanitizer, but sees far more with one.
IsolatedTotals run_isolated(const IsolatedCases& cases);

}  // namespace canopy::test
