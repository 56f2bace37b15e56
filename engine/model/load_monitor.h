#pragma once
// Progress and cancellation of a load that several threads work on.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <stop_token>

namespace canopy {

/// Called by any of the threads that load, never by two at a time.
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

  /// Counts bytes that are about to be read. May be called by any thread. Throws cancelled once stop was requested.
  void advance(uint64_t bytes);

  /// Reports the progress now, even where the last report was a moment ago.
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
