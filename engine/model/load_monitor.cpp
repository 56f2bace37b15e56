#include "engine/model/load_monitor.h"

#include "engine/base/error.h"

namespace canopy {
namespace {

constexpr std::chrono::milliseconds kReportInterval{30};

[[noreturn]] void throw_cancelled() {
  throw cancelled("Loading was cancelled.");
}

}  // namespace

void require_going(const LoadCallbacks& callbacks) {
  if (callbacks.stop.stop_requested()) throw_cancelled();
}

void LoadMonitor::advance(uint64_t bytes) {
  done_ += bytes;
  // A thread that finds another one asking goes on: that one's answer reaches it with the next rows.
  if (const std::unique_lock lock(mutex_, std::try_to_lock); lock) {
    if (callbacks_.stop.stop_requested()) cancelled_ = true;
    const auto now = std::chrono::steady_clock::now();
    if (!cancelled_ && callbacks_.progress && now - reported_ >= kReportInterval) {
      reported_ = now;
      callbacks_.progress(done_, total_);
    }
  }
  if (cancelled_) throw_cancelled();
}

void LoadMonitor::report() {
  const std::lock_guard lock(mutex_);
  if (callbacks_.progress) callbacks_.progress(done_, total_);
}

}  // namespace canopy
