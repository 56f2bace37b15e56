#include "app/base/figures.h"

#include <cmath>
#include <cstdio>

namespace canopy::app {

std::string grouped(uint64_t value) {
  std::string digits = std::to_string(value);
  for (int at = static_cast<int>(digits.size()) - 3; at > 0; at -= 3) digits.insert(static_cast<size_t>(at), 1, ',');
  return digits;
}

std::string fixed(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

std::string whole(double value) {
  constexpr double largest = 1e15;  // above this, a double cannot tell whole numbers apart
  if (!std::isfinite(value)) return "?";
  const double size = std::fmin(std::fabs(value), largest);
  const std::string digits = grouped(static_cast<uint64_t>(std::llround(size)));
  return value < 0 && digits != "0" ? "\u2212" + digits : digits;
}

std::string speed(double tokens_per_second) {
  return tokens_per_second >= 0 && tokens_per_second < 9.95 ? fixed(tokens_per_second, 1) : whole(tokens_per_second);
}

std::string millisecond_figure(double value) {
  const double size = std::fabs(value);
  if (size >= 999.95) return whole(value);  // this and more would be written as "1000.0"
  return fixed(value, size >= 99.995 ? 1 : 2);
}

std::string milliseconds(double value) {
  return millisecond_figure(value) + " ms";
}

std::string percent(double share, int digits) {
  return fixed(100 * share, digits) + "%";
}

std::string signed_percent(double share) {
  const std::string size = percent(std::fabs(share));
  return size == percent(0) ? size : (share < 0 ? "\u2212" : "+") + size;
}

std::string times(double ratio) {
  // Below 1 a tenth is much of it: a quarter is not 0.3.
  if (ratio >= 0.095 && ratio < 0.995) {
    std::string words = "\u00d7" + fixed(ratio, 2);
    if (words.ends_with('0')) words.pop_back();
    return words;
  }
  if (ratio >= 0.095) return "\u00d7" + fixed(ratio, 1);
  return ratio >= 0.0095 ? "\u00d7" + fixed(ratio, 2) : "<\u00d70.01";
}

std::string counted(uint64_t count, const char* one, const char* many) {
  return grouped(count) + " " + (count == 1 ? one : many);
}

}  // namespace canopy::app
