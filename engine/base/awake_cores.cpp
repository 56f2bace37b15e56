#include "engine/base/awake_cores.h"

#include <algorithm>
#include <chrono>
#include <system_error>

#if defined(__linux__)
#include <pthread.h>
#include <sched.h>
#endif

namespace canopy {
namespace {

constexpr auto kLinger = std::chrono::milliseconds(1);  // longer than the host works between two passes
constexpr uint32_t kMostThreads = 32;                   // llvmpipe has no more

/// Moves this thread to the lowest scheduling class. Returns whether that worked; if not, the thread must not spin.
bool enter_lowest_class() {
#if defined(__linux__)
  const sched_param none{};
  return pthread_setschedparam(pthread_self(), SCHED_IDLE, &none) == 0;
#else
  return false;
#endif
}

void pause_briefly() {
  for (int i = 0; i < 32; ++i) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
  }
}

}  // namespace

AwakeCores::AwakeCores() {
#if defined(__linux__)
  const uint32_t count = std::min(std::max(1u, std::thread::hardware_concurrency()), kMostThreads);
  try {
    for (uint32_t i = 0; i < count; ++i) threads_.emplace_back([this] { keep_awake(); });
  } catch (const std::system_error&) {
    // Continue with fewer threads or none: only speed suffers.
  }
#endif
}

AwakeCores::~AwakeCores() {
  holds_.fetch_or(kStop);
  holds_.notify_all();
}

void AwakeCores::keep_awake() {
  if (!enter_lowest_class()) return;
  for (;;) {
    holds_.wait(0);
    auto last_held = std::chrono::steady_clock::now();
    for (auto now = last_held; now - last_held < kLinger; now = std::chrono::steady_clock::now()) {
      const uint32_t holds = holds_.load(std::memory_order_relaxed);
      if ((holds & kStop) != 0) return;
      if (holds != 0) last_held = now;
      pause_briefly();
    }
  }
}

AwakeCores::Hold::Hold(AwakeCores& cores) : cores_(cores) {
  if (cores_.holds_.fetch_add(1) == 0) cores_.holds_.notify_all();
}

AwakeCores::Hold::~Hold() {
  cores_.holds_.fetch_sub(1);
}

}  // namespace canopy
