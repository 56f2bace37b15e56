#pragma once

#include <chrono>

namespace canopy {

inline double milliseconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

/// Adds the milliseconds between its construction and its destruction to a sum.
class StageTimer {
 public:
  explicit StageTimer(double& ms) : ms_(ms) {}
  StageTimer(const StageTimer&) = delete;
  StageTimer& operator=(const StageTimer&) = delete;
  ~StageTimer() { ms_ += milliseconds_since(start_); }

 private:
  double& ms_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace canopy
