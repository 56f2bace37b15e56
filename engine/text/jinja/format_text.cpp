#include "engine/text/jinja/format_text.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "engine/text/jinja/operations.h"

namespace canopy::jinja {
namespace {

// A character as Python escapes it: two, four or eight hexadecimal digits.
std::string escape(int32_t code_point) {
  std::array<char, 16> buffer{};
  const char* form = code_point > 0xFFFF ? "\\U%08x" : code_point > 0xFF ? "\\u%04x" : "\\x%02x";
  std::snprintf(buffer.data(), buffer.size(), form, static_cast<unsigned>(code_point));
  return buffer.data();
}

void print_quoted(TextBuilder& out, const Text& text) {
  const std::string_view bytes = text.bytes();
  const bool has_single = bytes.find('\'') != std::string_view::npos;
  const char quote = has_single && bytes.find('"') == std::string_view::npos ? '"' : '\'';
  out.add(std::string_view(&quote, 1));
  for (size_t at = 0; at < bytes.size();) {
    const CodePoint c = code_point_at(bytes, at);
    const Origin origin = text.origin(at);
    if (c.value == '\n') {
      out.add("\\n", origin);
    } else if (c.value == '\r') {
      out.add("\\r", origin);
    } else if (c.value == '\t') {
      out.add("\\t", origin);
    } else if (c.value == '\\' || c.value == quote) {
      out.add("\\", origin);
      out.add(text, at, 1);
    } else if (!c.valid || !is_printable(c.value)) {
      out.add(escape(c.value), origin);
    } else {
      out.add(text, at, c.size);
    }
    at += c.size;
  }
  out.add(std::string_view(&quote, 1));
}

void print_list(TextBuilder& out, const List& list) {
  if (list.kind == List::range) {
    out.add("range(" + std::to_string(list.bounds[0]) + ", " + std::to_string(list.bounds[1]));
    return out.add(list.bounds[2] == 1 ? ")" : ", " + std::to_string(list.bounds[2]) + ")");
  }
  constexpr std::array<std::string_view, 7> openers = {"[",           "(", "(", "", "dict_keys([", "dict_values([",
                                                       "dict_items(["};
  out.add(openers[list.kind]);
  for (size_t i = 0; i < list.items.size(); ++i) {
    if (i > 0) out.add(", ");
    print_literal(out, list.items[i]);
  }
  if (list.is_tuple() && list.items.size() == 1) out.add(",");
  out.add(list.is_tuple() ? ")" : list.is_view() ? "])" : "]");
}

void print_dict(TextBuilder& out, const Dict& dict) {
  out.add("{");
  bool first = true;
  for (const auto& [key, value] : dict.items) {
    if (!first) out.add(", ");
    first = false;
    print_literal(out, key);
    out.add(": ");
    print_literal(out, value);
  }
  out.add("}");
}

}  // namespace

std::string format_float(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  // The shortest digits in scientific form, then Python's choice between the forms by the exponent.
  std::array<char, 40> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::scientific);
  const std::string scientific(buffer.data(), end.ptr);
  const size_t e = scientific.find('e');
  const int exponent = std::atoi(scientific.c_str() + e + 1);
  if (exponent < -4 || exponent >= 16) return scientific;
  std::array<char, 400> fixed{};
  const auto fixed_end = std::to_chars(fixed.data(), fixed.data() + fixed.size(), value, std::chars_format::fixed);
  std::string text(fixed.data(), fixed_end.ptr);
  return text.find('.') == std::string::npos ? text + ".0" : text;
}

void print(TextBuilder& out, const Value& value) {
  if (const Text* text = value.text()) {
    out.add(*text);
  } else if (!value.is_undefined()) {
    print_literal(out, value);
  }
}

Text to_text(Context& context, const Value& value) {
  if (const Text* text = value.text()) {
    context.use_text(text->size());
    return *text;
  }
  TextBuilder builder(context);
  print(builder, value);
  return builder.take();
}

Text text_of(Context& context, const Value& value) {
  return value.text() != nullptr ? *value.text() : to_text(context, value);
}

void print_literal(TextBuilder& out, const Value& value) {
  out.context().step();
  if (value.is_undefined()) {
    out.add("Undefined");
  } else if (value.is_none()) {
    out.add("None");
  } else if (const bool* truth = value.boolean()) {
    out.add(*truth ? "True" : "False");
  } else if (const int64_t* integer = value.integer()) {
    out.add(std::to_string(*integer));
  } else if (const BigInteger* big = value.big()) {
    out.context().step(big->size() * big->size() / 16);
    out.add(big->text());
  } else if (const double* number = value.floating()) {
    out.add(format_float(*number));
  } else if (const Text* text = value.text()) {
    if (text->is_safe()) out.add("Markup(");
    print_quoted(out, *text);
    if (text->is_safe()) out.add(")");
  } else if (const List* list = value.list()) {
    print_list(out, *list);
  } else if (const Dict* dict = value.dict()) {
    print_dict(out, *dict);
  } else {
    const Context::Call level(out.context());
    value.object()->print(out);
  }
}

}  // namespace canopy::jinja
