#include "engine/base/figures.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace canopy {
namespace {

struct Unit {
  const char* name;
  double bytes;
  int digits;  // behind the point
};

constexpr Unit kKilobytes{"kB", 1e3, 1};
constexpr Unit kMegabytes{"MB", 1e6, 1};
constexpr Unit kGigabytes{"GB", 1e9, 2};

const Unit& unit_of(uint64_t bytes) {
  if (bytes < 1'000'000) return kKilobytes;
  return bytes < 1'000'000'000 ? kMegabytes : kGigabytes;
}

std::string number(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

std::string whole(double value) {
  return number(value, 0);
}

}  // namespace

std::string byte_figures(uint64_t bytes) {
  const Unit& unit = unit_of(bytes);
  return number(static_cast<double>(bytes) / unit.bytes, unit.digits) + " " + unit.name;
}

std::string duration_figures(double seconds) {
  constexpr double kLongest = 99 * 3600;  // longer times are shown as this
  const double s = std::ceil(std::clamp(seconds, 1.0, kLongest));
  if (s < 60) return whole(s) + " s";
  if (s < 3600) return whole(std::floor(s / 60)) + " min " + whole(std::fmod(s, 60)) + " s";
  return whole(std::floor(s / 3600)) + " h " + whole(std::floor(std::fmod(s, 3600) / 60)) + " min";
}

std::string progress_figures(uint64_t done, uint64_t total, bool in_bytes, double seconds_left) {
  if (total == 0) return "";
  std::string text = std::to_string(done) + " of " + std::to_string(total);
  if (in_bytes) {
    const Unit& unit = unit_of(total);
    // One digit less than byte_figures(), since these numbers change quickly.
    const int digits = std::max(0, unit.digits - 1);
    text = number(static_cast<double>(done) / unit.bytes, digits) + " / " +
           number(static_cast<double>(total) / unit.bytes, digits) + " " + unit.name;
  }
  if (seconds_left >= 0 && done < total) text += ", " + duration_figures(seconds_left) + " left";
  return text;
}

}  // namespace canopy
