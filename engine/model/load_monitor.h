#pragma once
// What a load tells its caller, and how its caller ends it, while several threads work for it.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <stop_token>

namespace canopy {

/// Called by whichever thread of a load is at hand, one at a time.
struct LoadCallbacks {
  std::function<void(uint64_t done, uint64_t total)> progress;  // bytes of the file's matrices; some 30 times a second
  std::stop_token stop;  // looked at every few milliseconds; once requested, cancelled is thrown
};

/// Throws cancelled when stop is requested.
void require_going(const LoadCallbacks& callbacks);

class LoadMonitor {
 public:
  /// The callbacks must outlive it.
  LoadMonitor(const LoadCallbacks& callbacks, uint64_t total_bytes) : callbacks_(callbacks), total_(total_bytes) {}

  /// So many bytes more are about to be read. Any thread. Throws cancelled once the caller wants no more.
  void advance(uint64_t bytes);

  /// Tells where the load is, however short ago that was told last.
  void report();

 private:
  const LoadCallbacks& callbacks_;
  const uint64_t total_;
  std::atomic<uint64_t> done_{0};
  std::atomic<bool> cancelled_{false};
  std::mutex mutex_;  // of the callbacks and of what follows
  std::chrono::steady_clock::time_point reported_ = {};
};

}  // namespace canopy
