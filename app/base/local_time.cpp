#include "app/base/local_time.h"

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

std::string local_time_and_zone(int64_t milliseconds) {
  std::string text = formatted_time(milliseconds, "%Y-%m-%d %H:%M:%S %z");
  if (text.size() > 2) text.insert(text.size() - 2, ":");  // "+0100" is hard to read
  return text;
}

}  // namespace canopy::app
