#pragma once
// How far a measurement is and how long it goes on: on one line of a terminal, elsewhere a line now and then.

#include <chrono>
#include <cstdint>
#include <string>

#include "app/cli/terminal.h"

namespace canopy::cli {

class BenchProgress {
 public:
  explicit BenchProgress(std::string what) : what_(std::move(what)) {}

  /// Of `total` equal parts `done` are done. The time left is told at the pace since the first call, warm-up aside.
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
