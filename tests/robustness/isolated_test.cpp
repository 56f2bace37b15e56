// Tests of run_isolated() itself: each kind of fault of a case is reported as a failure of that case.

#include "tests/robustness/isolated.h"

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <vector>

namespace canopy::test {
namespace {

/// Runs six cases, of which the fourth calls the function.
IsolatedTotals with_fourth(CaseResult (*fourth)()) {
  IsolatedCases cases;
  cases.count = 6;
  cases.describe = [](uint64_t index) { return "case " + std::to_string(index); };
  cases.run = [&](uint64_t index) { return index == 3 ? fourth() : CaseResult{index > 3, ""}; };
  return run_isolated(cases);
}

TEST(Isolated, CountsWhatWasRefusedAndLoaded) {
  const IsolatedTotals totals = with_fourth([] { return CaseResult{true, ""}; });
  EXPECT_EQ(totals.refused, 3u);
  EXPECT_EQ(totals.accepted, 3u);
}

TEST(Isolated, AFailureNamesItsCase) {
  EXPECT_NONFATAL_FAILURE(with_fourth([] { return CaseResult{true, "the wrong answer"}; }), "case 3: the wrong answer");
}

TEST(Isolated, AForeignExceptionIsAFailure) {
  EXPECT_NONFATAL_FAILURE(with_fourth([]() -> CaseResult { throw std::runtime_error("odd"); }),
                          "case 3: a foreign exception escaped: odd");
}

TEST(Isolated, ACrashIsAFailureAndTheOthersAreRun) {
  IsolatedTotals totals;
  EXPECT_NONFATAL_FAILURE(totals = with_fourth([]() -> CaseResult { std::abort(); }), "case 3: ");
  EXPECT_EQ(totals.refused + totals.accepted, 5u);
}

TEST(Isolated, AnEndlessLoopIsStopped) {
  EXPECT_NONFATAL_FAILURE(with_fourth([]() -> CaseResult {
                            for (std::atomic<int> i = 0;; ++i) {
                            }
                          }),
                          "case 3: took more than");
}

TEST(Isolated, TooMuchMemoryIsAFailure) {
  EXPECT_NONFATAL_FAILURE(with_fourth([] {
                            std::vector<std::unique_ptr<char[]>> blocks;
                            for (int i = 0; i < 9; ++i) {  // each of these alone is within the limit
                              blocks.push_back(std::make_unique<char[]>(64 << 20));
                              for (size_t at = 0; at < 64 << 20; at += 4096) blocks.back()[at] = 1;
                            }
                            return CaseResult{};
                          }),
                          "case 3: ");
}

TEST(Isolated, MemoryThatIsOnlyAskedForCountsToo) {
  EXPECT_NONFATAL_FAILURE(with_fourth([] {
                            static char* volatile escapes;  // so that the compiler keeps the allocation
                            const auto block = std::make_unique_for_overwrite<char[]>(600 << 20);
                            escapes = block.get();
                            return CaseResult{escapes != nullptr, ""};
                          }),
                          "case 3: ");
}

}  // namespace
}  // namespace canopy::test
