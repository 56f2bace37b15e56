#pragma once
// The work of a rendering, in units of a simple template that uses up all its steps, so that a slow machine or a
// sanitizer makes no difference.

#include <algorithm>

#include "tests/base/processor_time.h"
#include "tests/text/jinja/jinja_test.h"

namespace canopy::jinja {

/// More than this many times the work of a million simple steps is work that no limit counts.
inline constexpr double most_work = 100;

class Work {
 public:
  /// The work since this object was made.
  double of_all_steps() const { return clock_.seconds() / all_steps_; }

 private:
  static double seconds_of_all_steps() {
    static const double seconds = [] {
      const test::ProcessorClock clock;
      EXPECT_NE(error_of("{% for i in range(10**9) %}{% endfor %}"), "");
      return std::max(clock.seconds(), 0.01);
    }();
    return seconds;
  }

  double all_steps_ = seconds_of_all_steps();
  test::ProcessorClock clock_;
};

}  // namespace canopy::jinja
