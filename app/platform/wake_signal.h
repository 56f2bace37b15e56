#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace canopy::app {

/// What a loop without a window system sleeps on until the engine has news.
class WakeSignal {
 public:
  void raise() {
    {
      const std::lock_guard lock(mutex_);
      raised_ = true;
    }
    condition_.notify_one();
  }
  /// Returns when raised since the last wait, or after the time.
  void wait_for(std::chrono::milliseconds time) {
    std::unique_lock lock(mutex_);
    condition_.wait_for(lock, time, [&] { return raised_; });
    raised_ = false;
  }

 private:
  std::mutex mutex_;
  std::condition_variable condition_;
  bool raised_ = false;
};

}  // namespace canopy::app
