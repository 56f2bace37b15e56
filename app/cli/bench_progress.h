#pragma once
// Shows the progress of a measurement and the time left: on one line of a terminal, elsewhere as a line now and then.

#include <chrono>
#include <cstdint>
#include <string>

#include "app/cli/terminal.h"

namespace canopy::cli {

class BenchProgress {
 public:
  explicit BenchProgress(std::string what) : what_(std::move(what)) {}

  /// Shows that `done` of `total` equal parts are done. The time left is estimated from the first call on, so that
  /// warming up does not count.
  void show(uint64_t done, uint64_t total);

  void clear() { line_.clear(); }

 private:
  using Clock = std::chrono::steady_clock;
  std::string what_;
  ProgressLine line_;
  bool started_ = false;
  Clock::time_point start_, noted_;
};

}  // namespace canopy::cli
