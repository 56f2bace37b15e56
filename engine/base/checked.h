#pragma once
// Size arithmetic on numbers that came from a file or a user. The check comes before the operation, so no wrapped
// product or sum ever exists; `what` names the quantity in the message.

#include <concepts>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "engine/base/error.h"

namespace canopy {

/// a * b, or nothing when T cannot hold it.
template <std::unsigned_integral T>
constexpr std::optional<T> try_mul(T a, T b) {
  if (b != 0 && a > std::numeric_limits<T>::max() / b) return std::nullopt;
  return static_cast<T>(a * b);
}

/// a + b, or nothing when T cannot hold it.
template <std::unsigned_integral T>
constexpr std::optional<T> try_add(T a, T b) {
  if (a > std::numeric_limits<T>::max() - b) return std::nullopt;
  return static_cast<T>(a + b);
}

/// a * b; throws bad_input naming `what` and both factors when T cannot hold it.
template <std::unsigned_integral T>
constexpr T checked_mul(T a, T b, std::string_view what) {
  if (const auto product = try_mul(a, b)) return *product;
  throw bad_input("The " + std::string(what) + " overflows: " + std::to_string(a) + " times " + std::to_string(b) +
                  " is more than " + std::to_string(std::numeric_limits<T>::max()) + ".");
}

/// a + b; throws bad_input naming `what` and both terms when T cannot hold it.
template <std::unsigned_integral T>
constexpr T checked_add(T a, T b, std::string_view what) {
  if (const auto sum = try_add(a, b)) return *sum;
  throw bad_input("The " + std::string(what) + " overflows: " + std::to_string(a) + " plus " + std::to_string(b) +
                  " is more than " + std::to_string(std::numeric_limits<T>::max()) + ".");
}

/// value as a To; throws bad_input naming `what` when To cannot hold it.
template <std::integral To, std::integral From>
constexpr To checked_cast(From value, std::string_view what) {
  if (std::in_range<To>(value)) return static_cast<To>(value);
  throw bad_input("The " + std::string(what) + " is " + std::to_string(value) + ", outside the range " +
                  std::to_string(std::numeric_limits<To>::min()) + " to " +
                  std::to_string(std::numeric_limits<To>::max()) + ".");
}

/// The smallest multiple of `alignment` (not 0) that is at least `value`.
template <std::unsigned_integral T>
constexpr T checked_align_up(T value, T alignment, std::string_view what) {
  const T rest = value % alignment;
  return rest == 0 ? value : checked_add(value, static_cast<T>(alignment - rest), what);
}

}  // namespace canopy
