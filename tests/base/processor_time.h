#pragma once
// How much a test computed, and not how long it took: a busy machine, or one that pauses programs, makes no difference.

#include <ctime>

namespace canopy::test {

/// Seconds of processor time of this thread since the clock was made.
class ProcessorClock {
 public:
  ProcessorClock() : begin_(now()) {}
  double seconds() const { return now() - begin_; }

 private:
  static double now() {
    timespec time = {};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
  }

  double begin_;
};

}  // namespace canopy::test
