#include "tests/robustness/isolated.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <exception>
#include <fstream>
#include <new>
#include <string_view>

#include "tests/base/processor_time.h"

// Finds memory that is unreachable now and reports where it was allocated. Null without LeakSanitizer.
extern "C" __attribute__((weak)) int __lsan_do_recoverable_leak_check();

#if defined(__SANITIZE_ADDRESS__)
// An allocation beyond the limit ends the case at once. A small quarantine keeps the peak of memory meaningful.
extern "C" const char* __asan_default_options() {
  return "max_allocation_size_mb=512:quarantine_size_mb=16:detect_stack_use_after_return=1";
}
#endif

namespace canopy::test {
namespace {

constexpr uint64_t batch_cases = 2000;  // checked for leaks together, so a leak is in one of this many cases
constexpr int most_failures = 20;

/// What a child process reports, in memory that outlives it.
struct Shared {
  uint64_t current = 0;
  IsolatedTotals totals;
};

class SharedPage {
 public:
  SharedPage()
      : page_(::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)),
        shared_(new (page_) Shared) {}
  SharedPage(const SharedPage&) = delete;
  SharedPage& operator=(const SharedPage&) = delete;
  ~SharedPage() { ::munmap(page_, sizeof(Shared)); }
  Shared* operator->() const { return shared_; }

 private:
  void* page_;
  Shared* shared_;
};

uint64_t peak_bytes() {
  rusage usage = {};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<uint64_t>(usage.ru_maxrss) << 10;
}

/// SIGPROF ends the process when its processor time is used up, also in an endless loop.
void arm_timer(double seconds) {
  const auto whole = static_cast<time_t>(seconds);
  const itimerval timer = {{0, 0}, {whole, static_cast<suseconds_t>((seconds - static_cast<double>(whole)) * 1e6)}};
  ::setitimer(ITIMER_PROF, &timer, nullptr);
}

/// Limits the address space, so memory counts even if it is never touched. Not with sanitizers, which need terabytes of
/// addresses and have a limit of their own.
void limit_allocations([[maybe_unused]] uint64_t bytes) {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  std::ifstream status("/proc/self/status");
  uint64_t kib = 0;
  for (std::string word; status >> word;) {
    if (word == "VmData:" && status >> kib) break;
  }
  const rlim_t most = (kib << 10) + bytes;
  const rlimit limit = {most, most};
  ::setrlimit(RLIMIT_DATA, &limit);
#endif
}

CaseResult run_one(const IsolatedCases& cases, uint64_t index) {
  try {
    return cases.run(index);
  } catch (const std::exception& e) {
    return {false, std::string("a foreign exception escaped: ") + e.what()};
  } catch (...) {
    return {false, "something that is no exception was thrown"};
  }
}

/// The child process: runs the cases from shared->current to `end` and writes each failure to the pipe as a line.
[[noreturn]] void run_batch(const IsolatedCases& cases, const SharedPage& shared, uint64_t end, int pipe) {
  const auto report = [&](const std::string& text) {
    std::string line = text;
    std::ranges::replace(line, '\n', ' ');
    line += '\n';
    [[maybe_unused]] const ssize_t written = ::write(pipe, line.data(), line.size());
  };
  limit_allocations(cases.limits.memory_bytes);
  const uint64_t peak_before = peak_bytes();
  for (uint64_t index = shared->current; index < end; index += cases.stride) {
    shared->current = index;
    arm_timer(cases.limits.cpu_seconds);
    const ProcessorClock clock;
    const CaseResult result = run_one(cases, index);
    IsolatedTotals& totals = shared->totals;
    totals.slowest_seconds = std::max(totals.slowest_seconds, clock.seconds());
    ++(result.accepted ? totals.accepted : totals.refused);
    arm_timer(0);
    if (!result.failure.empty()) report(cases.describe(index) + ": " + result.failure);
    const uint64_t peak = peak_bytes() - peak_before;
    if (peak > cases.limits.memory_bytes && totals.peak_bytes <= cases.limits.memory_bytes) {
      report(cases.describe(index) + ": took " + std::to_string(peak >> 20) + " MiB of memory");
    }
    totals.peak_bytes = std::max(totals.peak_bytes, peak);
  }
  shared->current = end;
  if (__lsan_do_recoverable_leak_check != nullptr && __lsan_do_recoverable_leak_check() != 0) {
    report("memory leaked in the batch that ends before case " + std::to_string(end));
  }
  ::_exit(0);
}

std::string read_all(int descriptor) {
  std::string text;
  char buffer[4096];
  for (ssize_t got = 0; (got = ::read(descriptor, buffer, sizeof buffer)) > 0;) {
    text.append(buffer, static_cast<size_t>(got));
  }
  return text;
}

std::string cause_of_death(int status, const CaseLimits& limits) {
  if (WIFEXITED(status)) return "ended with code " + std::to_string(WEXITSTATUS(status)) + " (see the report above)";
  const int signal = WTERMSIG(status);
  if (signal == SIGPROF) return "took more than " + std::to_string(limits.cpu_seconds) + " s of processor time";
  return std::string("was killed by signal ") + std::to_string(signal) + " (" + ::strsignal(signal) + ")";
}

/// Runs one child process; returns the number of failures it reported.
int run_child(const IsolatedCases& cases, const SharedPage& shared, uint64_t end) {
  int ends[2] = {};
  if (::pipe(ends) != 0) {
    ADD_FAILURE() << "no pipe: " << std::strerror(errno);
    return most_failures;
  }
  std::fflush(nullptr);  // so that the child does not print buffered output again
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    run_batch(cases, shared, end, ends[1]);
  }
  ::close(ends[1]);
  const std::string reports = read_all(ends[0]);
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  const auto failures = static_cast<int>(std::ranges::count(reports, '\n'));
  if (failures > 0) ADD_FAILURE() << reports;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return failures;
  ADD_FAILURE() << cases.describe(shared->current) << ": " << cause_of_death(status, cases.limits);
  shared->current += cases.stride;  // goes on with the case after the one that ended the child
  return failures + 1;
}

}  // namespace

IsolatedTotals run_isolated(const IsolatedCases& cases) {
  const SharedPage shared;
  int failures = 0;
  while (shared->current < cases.count && failures < most_failures) {
    const uint64_t end = std::min(cases.count, shared->current + batch_cases * cases.stride);
    failures += run_child(cases, shared, end);
  }
  const IsolatedTotals totals = shared->totals;
  std::printf("%llu cases: %llu refused, %llu loaded; the slowest took %.3f s, the peak was %.1f MiB\n",
              static_cast<unsigned long long>(totals.refused + totals.accepted),
              static_cast<unsigned long long>(totals.refused), static_cast<unsigned long long>(totals.accepted),
              totals.slowest_seconds, static_cast<double>(totals.peak_bytes) / (1 << 20));
  return totals;
}

}  // namespace canopy::test
