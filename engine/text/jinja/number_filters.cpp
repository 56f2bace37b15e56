// Filters of numbers, and default.

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "engine/text/jinja/builtins.h"
#include "engine/text/jinja/operations.h"
#include "engine/text/jinja/text_operations.h"

namespace canopy::jinja {
namespace {

// The text between white space, without single underscores between digits, as Python reads numbers.
std::string number_text(Context& context, const Text& text) {
  const Text stripped = strip(context, text, nullptr, Sides::both);
  std::string digits;
  const std::string_view bytes = stripped.bytes();
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  for (size_t i = 0; i < bytes.size(); ++i) {
    const bool separates =
        bytes[i] == '_' && i > 0 && i + 1 < bytes.size() && is_digit(bytes[i - 1]) && is_digit(bytes[i + 1]);
    if (!separates) digits += bytes[i];
  }
  if (digits.size() > 1 && digits[0] == '+' && digits[1] != '-') digits.erase(0, 1);
  return digits;
}

template <class Number, class... Format>
std::optional<Number> parse_number(const std::string& text, Format... format) {
  Number number{};
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, number, format...);
  if (result.ec != std::errc() || result.ptr != end || text.empty()) return std::nullopt;
  return number;
}

std::optional<int64_t> truncated(double number) {
  constexpr double limit = 9223372036854775808.0;  // 2^63
  if (!(number > -limit && number < limit)) return std::nullopt;
  return static_cast<int64_t>(number);
}

Value filter_int(Context& context, const Value& subject, const Arguments& arguments) {
  const Parameters p("int", arguments, {"default", "base"});
  require_defined(subject);
  std::optional<int64_t> number = subject.as_integer();
  if (const double* real = subject.floating()) number = truncated(*real);
  if (const Text* text = subject.text()) {
    const std::string digits = number_text(context, *text);
    const int64_t base = p.integer(1, 10);
    if (base < 2 || base > 36) throw Failure("The argument 'base' of 'int' must be between 2 and 36.");
    number = parse_number<int64_t>(digits, static_cast<int>(base));
    if (const auto real = parse_number<double>(digits); !number && real) number = truncated(*real);
  }
  if (number) return *number;
  return p.find(0) == nullptr ? Value(0) : p.at(0);
}

Value filter_float(Context& context, const Value& subject, const Arguments& arguments) {
  const Parameters p("float", arguments, {"default"});
  require_defined(subject);
  std::optional<double> number = subject.as_number();
  if (const Text* text = subject.text()) number = parse_number<double>(number_text(context, *text));
  if (number) return *number;
  return p.find(0) == nullptr ? Value(0.0) : p.at(0);
}

Value filter_abs(Context&, const Value& subject, const Arguments& arguments) {
  const Parameters p("abs", arguments, {});
  if (const auto number = subject.as_integer()) return *number < 0 ? negate(*number) : Value(*number);
  if (const double* number = subject.floating()) return std::abs(*number);
  throw Failure("'abs' is given " + std::string(subject.kind()) + "; it must be a number.");
}

// Half to even in the decimal places, as Python rounds: the C library prints doubles exactly.
double rounded(double number, int64_t places) {
  if (!std::isfinite(number)) return number;
  if (places < 0) {
    const double unit = std::pow(10.0, static_cast<double>(-places));
    return std::nearbyint(number / unit) * unit;
  }
  std::array<char, 400> digits{};
  std::snprintf(digits.data(), digits.size(), "%.*f", static_cast<int>(places), number);
  return std::strtod(digits.data(), nullptr);
}

Value filter_round(Context&, const Value& subject, const Arguments& arguments) {
  constexpr int64_t most_places = 50;
  const Parameters p("round", arguments, {"precision", "method"});
  const auto number = subject.as_number();
  if (!number) throw Failure("'round' is given " + std::string(subject.kind()) + "; it must be a number.");
  const int64_t places = p.integer(0, 0);
  if (places < -most_places || places > most_places) {
    throw Failure("The argument 'precision' of 'round' must be between -50 and 50.");
  }
  const std::string_view method = p.find(1) == nullptr ? "common" : p.text(1).bytes();
  const double unit = std::pow(10.0, static_cast<double>(places));
  if (method == "ceil") return std::ceil(*number * unit) / unit;
  if (method == "floor") return std::floor(*number * unit) / unit;
  if (method != "common") throw Failure("The argument 'method' of 'round' must be common, ceil or floor.");
  if (const auto whole = subject.as_integer(); whole && places >= 0) return *whole;
  const double result = rounded(*number, places);
  if (subject.floating() == nullptr) return truncated(result).value_or(0);
  return result;
}

Value filter_default(Context&, const Value& subject, const Arguments& arguments) {
  const Parameters p("default", arguments, {"default_value", "boolean"});
  const bool replaced = subject.is_undefined() || (p.truth(1, false) && !subject.truthy());
  if (!replaced) return subject;
  return p.find(0) == nullptr ? Value::markup("") : p.at(0);
}

constexpr Filter number_filter_list[] = {
    {"abs", filter_abs},     {"d", filter_default}, {"default", filter_default},
    {"float", filter_float}, {"int", filter_int},   {"round", filter_round},
};

}  // namespace

std::span<const Filter> number_filters() {
  return number_filter_list;
}

}  // namespace canopy::jinja
