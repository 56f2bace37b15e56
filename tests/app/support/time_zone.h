#pragma once
// Another time zone for a while.

#include <cstdlib>
#include <optional>
#include <string>

namespace canopy::test {

/// Sets TZ while it lives.
class TimeZone {
 public:
  explicit TimeZone(const char* zone) {
    if (const char* old = ::getenv("TZ")) old_ = old;
    ::setenv("TZ", zone, 1);
  }
  ~TimeZone() { old_ ? ::setenv("TZ", old_->c_str(), 1) : ::unsetenv("TZ"); }
  TimeZone(const TimeZone&) = delete;
  TimeZone& operator=(const TimeZone&) = delete;

 private:
  std::optional<std::string> old_;
};

}  // namespace canopy::test
