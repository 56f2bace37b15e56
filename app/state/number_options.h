#pragma once
// Numbers on the command lines of both programs: read strictly, and refused in one sentence with what is allowed.

#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <random>
#include <string>
#include <system_error>
#include <type_traits>

#include <CLI/CLI.hpp>

#include "engine/base/text.h"

namespace canopy::app {

/// Which ends of a range are allowed themselves.
enum class RangeEnds { both, not_least, not_most };

template <class T>
std::string number_figures(T value) {
  if constexpr (std::is_integral_v<T>) return std::to_string(value);
  char text[32];
  std::snprintf(text, sizeof text, "%g", static_cast<double>(value));
  return text;
}

/// "a whole number from 1 to 1024", "a number above 0, up to 1", "a number of 0 or more".
template <class T>
std::string allowed_numbers(T least, T most, RangeEnds ends) {
  const std::string from = number_figures(least), to = number_figures(most);
  const std::string words = std::is_integral_v<T> ? "a whole number " : "a number ";
  if (ends == RangeEnds::not_least) return words + "above " + from + ", up to " + to;
  if (ends == RangeEnds::not_most) return words + "from " + from + " to below " + to;
  if (most == std::numeric_limits<T>::max() && !std::is_integral_v<T>) return words + "of " + from + " or more";
  return words + "from " + from + " to " + to;
}

/// Whether a text is a decimal number of that range and nothing else: no sign in front of what has none, no overflow,
/// no "nan", no "inf", no hexadecimal digits.
template <class T>
bool read_number(const std::string& text, T least, T most, RangeEnds ends, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return false;
  if constexpr (std::is_floating_point_v<T>)
    if (!std::isfinite(value)) return false;
  return (ends == RangeEnds::not_least ? value > least : value >= least) &&
         (ends == RangeEnds::not_most ? value < most : value <= most);
}

/// Allows an option the numbers of a range, which its help shows: option->transform(numbers(1u, 1024u)).
template <class T>
CLI::Validator numbers(T least, T most, RangeEnds ends = RangeEnds::both) {
  return CLI::Validator(
      [=](std::string& text) -> std::string {
        T value{};
        if (!read_number(text, least, most, ends, value)) {
          return quoted_name(text) + " is not allowed; give " + allowed_numbers(least, most, ends) + ".";
        }
        // Without the zeros in front that CLI11 would read as a sign of octal digits.
        if constexpr (std::is_integral_v<T>) text = std::to_string(value);
        return {};
      },
      most == std::numeric_limits<T>::max() ? "" : "in [" + number_figures(least) + " - " + number_figures(most) + "]");
}

/// Any number from 1 on that a 32-bit count can hold.
inline CLI::Validator counts() {
  return numbers<uint32_t>(1, std::numeric_limits<uint32_t>::max());
}

/// Allows an option a seed up to `most`, or -1 for one that is drawn, as other programs have it; `drawn` then becomes
/// true, so that the program can say which it was.
inline CLI::Validator seeds(uint64_t most, bool& drawn) {
  return CLI::Validator(
      [most, &drawn](std::string& text) -> std::string {
        uint64_t value = 0;
        if (text == "-1") {
          drawn = true;
          text = std::to_string(std::random_device{}() % (most == UINT64_MAX ? most : most + 1));
        } else if (read_number(text, uint64_t{0}, most, RangeEnds::both, value)) {
          text = std::to_string(value);
        } else {
          return quoted_name(text) + " is not allowed; give a whole number from 0 to " + std::to_string(most) +
                 ", or -1 to draw one.";
        }
        return {};
      },
      "");
}

}  // namespace canopy::app
