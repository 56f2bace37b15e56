#pragma once
// Processor time of a test, which unlike elapsed time does not depend on how busy the machine is.

#include <ctime>

namespace canopy::test {

enum class ProcessorTimeOf { this_thread, all_threads };

/// Processor seconds since the clock was made, of this thread or of all threads of the process.
class ProcessorClock {
 public:
  explicit ProcessorClock(ProcessorTimeOf whose = ProcessorTimeOf::this_thread)
      : clock_(whose == ProcessorTimeOf::this_thread ? CLOCK_THREAD_CPUTIME_ID : CLOCK_PROCESS_CPUTIME_ID),
        begin_(now()) {}
  double seconds() const { return now() - begin_; }

 private:
  double now() const {
    timespec time = {};
    ::clock_gettime(clock_, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
  }

  clockid_t clock_;
  double begin_;
};

}  // namespace canopy::test
