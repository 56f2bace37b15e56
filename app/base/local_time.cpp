#include "app/base/local_time.h"

#include <chrono>
#include <cstdio>
#include <ctime>

namespace canopy::app {
namespace {

std::string formatted_time(int64_t milliseconds, const char* format) {
  // Downwards, also before 1970.
  const int64_t whole = milliseconds / 1000 - (milliseconds % 1000 < 0 ? 1 : 0);
  const std::time_t seconds = static_cast<std::time_t>(whole);
  ::tzset();  // localtime_r() need not look at TZ
  std::tm parts = {};
  char text[64];
  if (!::localtime_r(&seconds, &parts)) return "";
  return {text, std::strftime(text, sizeof text, format, &parts)};
}

}  // namespace

std::string local_time(int64_t milliseconds) {
  return formatted_time(milliseconds, "%Y-%m-%d %H:%M:%S");
}

std::string local_minute(int64_t milliseconds) {
  return formatted_time(milliseconds, "%Y-%m-%d %H:%M");
}

std::optional<int64_t> moment_in(const std::string& utc) {
  using namespace std::chrono;
  int y = 0, h = 0, min = 0, s = 0, used = 0;
  unsigned m = 0, d = 0;
  const int fields = std::sscanf(utc.c_str(), "%4d-%2u-%2uT%2d:%2d:%2dZ%n", &y, &m, &d, &h, &min, &s, &used);
  const year_month_day date{year(y), month(m), day(d)};
  const bool in_day = h >= 0 && h < 24 && min >= 0 && min < 60 && s >= 0 && s < 60;
  if (fields != 6 || static_cast<size_t>(used) != utc.size() || !date.ok() || !in_day) return std::nullopt;
  const auto time = sys_days(date) + hours(h) + minutes(min) + seconds(s);
  return duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count();
}

std::string local_time_and_zone(int64_t milliseconds) {
  std::string text = formatted_time(milliseconds, "%Y-%m-%d %H:%M:%S %z");
  if (text.size() > 2) text.insert(text.size() - 2, ":");  // "+0100" is hard to read
  return text;
}

}  // namespace canopy::app
