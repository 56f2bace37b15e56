// Filters of numbers, and default.

#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "engine/text/jinja/builtins.h"
#include "engine/text/jinja/format_text.h"
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

// int(text, base): a sign, for base 0 the prefix that says the base, or the prefix that belongs to it, and digits.
std::optional<BigInteger> parse_int(std::string_view text, int64_t base) {
  if (base != 0 && (base < 2 || base > 36)) return std::nullopt;
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  constexpr std::pair<char, int64_t> prefixes[] = {{'x', 16}, {'o', 8}, {'b', 2}};
  bool has_prefix = false;
  for (const auto& [letter, own_base] : prefixes) {
    if (has_prefix || text.size() < 3 || text[0] != '0' || (text[1] | 0x20) != letter ||
        (base != 0 && base != own_base))
      continue;
    text.remove_prefix(text[2] == '_' ? 3 : 2);
    base = own_base;
    has_prefix = true;
  }
  if (base == 0 && text.size() > 1 && text[0] == '0' && text.find_first_not_of("0_") != std::string_view::npos)
    return std::nullopt;
  std::string digits;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      digits += text[i];
    } else if (i == 0 || i + 1 == text.size() || text[i - 1] == '_') {
      return std::nullopt;
    }
  }
  auto number = BigInteger::parse(digits, static_cast<int>(base == 0 ? 10 : base));
  return number && negative ? std::optional(-*number) : number;
}

std::optional<BigInteger> truncated(double number) {
  return std::isfinite(number) ? std::optional(BigInteger::truncated(number)) : std::nullopt;
}

Value filter_int(Context& context, const Value& subject, const Arguments& arguments) {
  const Parameters p("int", arguments, {"default", "base"});
  require_defined(subject);
  std::optional<BigInteger> number = subject.as_big_integer();
  if (const double* real = subject.floating()) {
    if (std::isinf(*real)) throw Failure("'int' is given a float that is infinite.");
    number = truncated(*real);
  }
  if (const Text* text = subject.text()) {
    const Text stripped = strip(context, *text, nullptr, Sides::both);
    context.use_text(stripped.size() * (1 + std::min<size_t>(stripped.size(), BigInteger::max_digits) / 64));
    number = parse_int(stripped.bytes(), p.integer(1, 10));
    if (const auto real = parse_float(number_text(context, *text)); !number && real) number = truncated(*real);
  }
  if (number) return *number;
  return p.find(0) == nullptr ? Value(0) : p.at(0);
}

Value filter_float(Context& context, const Value& subject, const Arguments& arguments) {
  const Parameters p("float", arguments, {"default"});
  require_defined(subject);
  std::optional<double> number = subject.as_number();
  if (number && subject.big() != nullptr && std::isinf(*number))
    throw Failure("A whole number is too large for a float.");
  if (const Text* text = subject.text()) number = parse_float(number_text(context, *text));
  if (number) return *number;
  return p.find(0) == nullptr ? Value(0.0) : p.at(0);
}

// 1.5 kB
Value filter_filesizeformat(Context& context, const Value& subject, const Arguments& arguments) {
  const Parameters p("filesizeformat", arguments, {"binary"});
  auto number = subject.as_number();
  if (const Text* text = subject.text()) number = parse_float(number_text(context, *text));
  if (!number) throw Failure("'filesizeformat' is given " + std::string(subject.kind()) + "; it must be a number.");
  const bool binary = p.truth(0, false);
  const double base = binary ? 1024 : 1000;
  if (*number == 1) return Value::markup("1 Byte");
  if (*number < base) return Value::markup(BigInteger::truncated(*number).text() + " Bytes");
  constexpr std::array<std::string_view, 8> prefixes = {"k", "M", "G", "T", "P", "E", "Z", "Y"};
  double unit = base * base;
  size_t i = 0;
  for (; i + 1 < prefixes.size() && !(*number < unit); ++i) unit *= base;
  const Value format = Value::markup("%.1f ");
  const Value size = format_printf(context, *format.text(), base * *number / unit);
  const std::string prefix = binary && i == 0 ? "K" : std::string(prefixes[i]);
  return apply(context, BinaryOp::add, size, Value::markup(prefix + (binary ? "iB" : "B")));
}

Value filter_abs(Context&, const Value& subject, const Arguments& arguments) {
  const Parameters p("abs", arguments, {});
  if (const auto number = subject.as_big_integer()) return number->negative() ? -*number : *number;
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

Value filter_round(Context& context, const Value& subject, const Arguments& arguments) {
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
  if (method == "ceil") return (std::ceil(*number * unit) + 0.0) / unit;  // no -0.0: Python has an int there
  if (method == "floor") return (std::floor(*number * unit) + 0.0) / unit;
  if (method != "common") throw Failure("The argument 'method' of 'round' must be common, ceil or floor.");
  const auto whole = subject.as_big_integer();
  if (!whole) return rounded(*number, places);
  if (places >= 0) return *whole;
  const Value unit_of_ints = apply(context, BinaryOp::power, 10, -places);
  const BigInteger ten = *unit_of_ints.as_big_integer();
  auto [quotient, rest] = BigInteger::divide(*whole, ten);
  const auto order = (rest + rest) <=> ten;
  const bool odd = quotient.digits(2).back() == '1';
  return (order > 0 || (order == 0 && odd) ? quotient + 1 : quotient) * ten;
}

Value filter_default(Context&, const Value& subject, const Arguments& arguments) {
  const Parameters p("default", arguments, {"default_value", "boolean"});
  const bool replaced = subject.is_undefined() || (p.truth(1, false) && !subject.truthy());
  if (!replaced) return subject;
  return p.find(0) == nullptr ? Value::markup("") : p.at(0);
}

constexpr Filter number_filter_list[] = {
    {"abs", filter_abs},         {"d", filter_default},
    {"default", filter_default}, {"filesizeformat", filter_filesizeformat},
    {"float", filter_float},     {"int", filter_int},
    {"round", filter_round},
};

}  // namespace

std::span<const Filter> number_filters() {
  return number_filter_list;
}

}  // namespace canopy::jinja
