#include "engine/base/machine.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tests/base/processor_time.h"

namespace canopy {
namespace {

using test::ProcessorClock;
using test::ProcessorTimeOf;

/// Whether threads may get the lowest scheduling class; otherwise AwakeCores has no effect.
bool has_lowest_class() {
  bool entered = false;
  std::jthread([&] {
    const sched_param none{};
    entered = pthread_setschedparam(pthread_self(), SCHED_IDLE, &none) == 0;
  }).join();
  return entered;
}

/// Watches the other threads of this process, which are those that keep cores awake.
class OtherThreads {
 public:
  double seconds() const { return all_.seconds() - mine_.seconds(); }

 private:
  ProcessorClock all_{ProcessorTimeOf::all_threads};
  ProcessorClock mine_{ProcessorTimeOf::this_thread};
};

/// The number of them that run or wait to run. On a busy machine threads of the lowest class use no time without being
/// asleep, so this is not measured by processor time.
int awake_threads() {
  const std::string mine = std::to_string(::gettid());
  int awake = 0;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream file(thread.path() / "stat");
    std::string stat;
    std::getline(file, stat);
    const size_t name_end = stat.rfind(')');  // "id (name) state ..."; a thread that has ended has no line
    if (name_end != std::string::npos && thread.path().filename() != mine) awake += stat.at(name_end + 2) == 'R';
  }
  return awake;
}

/// Waits for a condition, for very long: such threads may have to wait until they run, so that only what never happens
/// counts as a failure.
bool eventually(const std::function<bool()>& happens) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!happens()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

/// Whether they compute for longer than the millisecond after a hold.
bool compute() {
  const double enough = 5e-3 * std::max(1u, std::thread::hardware_concurrency());
  const OtherThreads others;
  return eventually([&] { return others.seconds() > enough; });
}

/// Whether they go to sleep and stay asleep.
bool rest() {
  int asleep = 0;
  return eventually([&] {
    asleep = awake_threads() == 0 ? asleep + 1 : 0;
    return asleep == 20;
  });
}

TEST(AwakeCores, ComputesWhileItIsHeldAndRestsOtherwise) {
  if (!has_lowest_class()) GTEST_SKIP() << "no thread may enter the class SCHED_IDLE here";
  AwakeCores cores;
  EXPECT_TRUE(rest()) << "before it was ever held";
  for (int i = 0; i < 2; ++i) {
    {
      const AwakeCores::Hold hold(cores);
      ASSERT_TRUE(compute()) << "hold " << i;
    }
    ASSERT_TRUE(rest()) << "after hold " << i;
  }
}

TEST(AwakeCores, StaysAwakeUntilTheLastOfSeveralHoldsEnds) {
  if (!has_lowest_class()) GTEST_SKIP() << "no thread may enter the class SCHED_IDLE here";
  AwakeCores cores;
  std::optional<AwakeCores::Hold> outer(std::in_place, cores);
  { const AwakeCores::Hold inner(cores); }
  EXPECT_TRUE(compute());
  outer.reset();
  EXPECT_TRUE(rest());
}

// Two other faults are possible: a thread that never ends makes a test hang, and use after destruction is found by the
// sanitizers.

TEST(AwakeCores, EndsWhetherOrNotItWasEverHeld) {
  for (int i = 0; i < 20; ++i) {
    AwakeCores cores;
    if (i % 2 == 0) const AwakeCores::Hold hold(cores);
  }
}

TEST(AwakeCores, IsHeldBySeveralAtOnce) {
  AwakeCores cores;
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 200; ++n) {
        const AwakeCores::Hold outer(cores);
        const AwakeCores::Hold inner(cores);
      }
    });
  }
}

TEST(AwakeCores, WakesAgainAfterItSlept) {
  AwakeCores cores;
  for (int i = 0; i < 3; ++i) {
    const std::optional<AwakeCores::Hold> hold(std::in_place, cores);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

}  // namespace
}  // namespace canopy
