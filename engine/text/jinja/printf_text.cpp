#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "engine/text/jinja/format_text.h"
#include "engine/text/jinja/operations.h"

namespace canopy::jinja {
namespace {

constexpr int max_width = 1000;  // of one field

struct Field {
  bool left = false, zeros = false, plus = false, space = false;
  int width = 0;
  std::optional<int> precision;
  char conversion = 0;
};

int read_number(std::string_view format, size_t& at) {
  int number = 0;
  for (; at < format.size() && format[at] >= '0' && format[at] <= '9'; ++at) {
    number = number * 10 + (format[at] - '0');
    if (number > max_width) {
      throw Failure("A field of a format is wider than " + std::to_string(max_width) + ", which is the limit.");
    }
  }
  return number;
}

// The field behind a '%' at `at`, which moves behind it.
Field read_field(std::string_view format, size_t& at) {
  Field field;
  for (; at < format.size(); ++at) {
    if (format[at] == '-') {
      field.left = true;
    } else if (format[at] == '0') {
      field.zeros = true;
    } else if (format[at] == '+') {
      field.plus = true;
    } else if (format[at] == ' ') {
      field.space = true;
    } else {
      break;
    }
  }
  field.width = read_number(format, at);
  if (at < format.size() && format[at] == '.') field.precision = read_number(format, ++at);
  constexpr std::string_view allowed = "srdifxXc%";
  if (at >= format.size() || allowed.find(format[at]) == std::string_view::npos) {
    throw Failure("A format has '%' without one of the supported conversions s, r, d, i, f, x, X, c and %.");
  }
  field.conversion = format[at++];
  return field;
}

std::string signed_text(const Field& field, bool negative, const std::string& digits) {
  const std::string sign = negative ? "-" : field.plus ? "+" : field.space ? " " : "";
  const size_t used = sign.size() + digits.size();
  const auto width = static_cast<size_t>(field.width);
  return field.zeros && !field.left && used < width ? sign + std::string(width - used, '0') + digits : sign + digits;
}

std::string format_integer(const Field& field, const Value& value) {
  auto number = value.as_integer();
  if (const double* real = value.floating(); real != nullptr && std::abs(*real) < 9e18) {
    number = static_cast<int64_t>(*real);
  }
  if (!number) throw Failure("A format wants a number and is given " + std::string(value.kind()) + ".");
  const auto size = *number < 0 ? uint64_t{0} - static_cast<uint64_t>(*number) : static_cast<uint64_t>(*number);
  std::array<char, 32> digits{};
  const char* form = field.conversion == 'x' ? "%llx" : field.conversion == 'X' ? "%llX" : "%llu";
  std::snprintf(digits.data(), digits.size(), form, static_cast<unsigned long long>(size));
  return signed_text(field, *number < 0, digits.data());
}

std::string format_real(const Field& field, const Value& value) {
  const auto number = value.as_number();
  if (!number) throw Failure("A format wants a number and is given " + std::string(value.kind()) + ".");
  std::array<char, max_width + 400> digits{};
  std::snprintf(digits.data(), digits.size(), "%.*f", field.precision.value_or(6), std::abs(*number));
  return signed_text(field, std::signbit(*number), digits.data());
}

Text format_field(Context& context, const Field& field, const Value& value) {
  switch (field.conversion) {
    case 'd':
    case 'i':
    case 'x':
    case 'X': return Text(format_integer(field, value));
    case 'f': return Text(format_real(field, value));
    default: break;
  }
  TextBuilder builder(context);
  if (field.conversion == 'r') {
    print_literal(builder, value);
  } else {
    print(builder, value);
  }
  Text text = builder.take();
  if (!field.precision) return text;
  context.use_text(text.size());
  const auto starts = character_starts(text.bytes());
  return text.part(0, starts[std::min(starts.size() - 1, static_cast<size_t>(*field.precision))]);
}

void add_padded(TextBuilder& out, const Field& field, const Text& text) {
  out.context().use_text(text.size());
  const size_t size = count_characters(text.bytes());
  const auto width = static_cast<size_t>(field.width);
  const std::string padding(size < width ? width - size : 0, ' ');
  if (!field.left) out.add(padding);
  out.add(text);
  if (field.left) out.add(padding);
}

}  // namespace

Value format_printf(Context& context, const Text& format, const Value& values) {
  const List* tuple = values.list() != nullptr && values.list()->is_tuple ? values.list() : nullptr;
  const size_t given = tuple == nullptr ? 1 : tuple->items.size();
  size_t used = 0;
  TextBuilder out(context);
  for (size_t at = 0; at < format.size();) {
    context.step();
    const size_t percent = std::min(format.bytes().find('%', at), format.size());
    out.add(format, at, percent - at);
    at = percent;
    if (at == format.size()) break;
    const Field field = read_field(format.bytes(), ++at);
    if (field.conversion == '%') {
      out.add("%");
      continue;
    }
    if (used == given) throw Failure("A format has more fields than the " + std::to_string(given) + " values given.");
    add_padded(out, field, format_field(context, field, tuple == nullptr ? values : tuple->items[used]));
    ++used;
  }
  if (used < given) throw Failure("A format has fewer fields than the " + std::to_string(given) + " values given.");
  return out.take();
}

}  // namespace canopy::jinja
