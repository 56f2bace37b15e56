#include "engine/base/awake_cores.h"

#include <gtest/gtest.h>

#include <optional>
#include <thread>
#include <vector>

namespace canopy {
namespace {

// What can go wrong here is a thread that never ends, or one that uses what is gone: the first hangs a test, the second
// is for the sanitizers.

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
