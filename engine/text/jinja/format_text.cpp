#include "engine/text/jinja/format_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "engine/base/text.h"
#include "engine/text/jinja/operations.h"
#include "engine/text/jinja/text_operations.h"

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

namespace {

std::string unicode_escape(int32_t code_point) {
  std::array<char, 16> buffer{};
  if (code_point <= 0xFFFF) {
    std::snprintf(buffer.data(), buffer.size(), "\\u%04x", static_cast<unsigned>(code_point));
  } else {
    const auto offset = static_cast<unsigned>(code_point - 0x10000);
    std::snprintf(buffer.data(), buffer.size(), "\\u%04x\\u%04x", 0xD800 + (offset >> 10), 0xDC00 + (offset & 0x3FF));
  }
  return buffer.data();
}

// The escape sequence of a character in JSON; empty where none is needed.
std::string json_escape(int32_t code_point, bool ascii) {
  switch (code_point) {
    case '"': return "\\\"";
    case '\\': return "\\\\";
    case '\n': return "\\n";
    case '\r': return "\\r";
    case '\t': return "\\t";
    case '\b': return "\\b";
    case '\f': return "\\f";
    default: break;
  }
  if (code_point < 0x20 || (ascii && code_point > 0x7E)) return unicode_escape(code_point);
  return {};
}

void print_string(TextBuilder& out, const Text& text, bool ascii) {
  const std::string_view bytes = text.bytes();
  out.add("\"");
  size_t plain = 0;  // where the characters that stand for themselves began
  for (size_t at = 0; at < bytes.size();) {
    const CodePoint c = code_point_at(bytes, at);
    if (const std::string escape = json_escape(c.value, ascii); !escape.empty()) {
      out.add(text, plain, at - plain);
      out.add(escape, text.origin(at));
      plain = at + c.size;
    }
    at += c.size;
  }
  out.add(text, plain, bytes.size() - plain);
  out.add("\"");
}

void break_line(TextBuilder& out, const JsonStyle& style, size_t level) {
  if (!style.indent) return;
  out.add("\n");
  for (size_t i = 0; i < level; ++i) out.add(*style.indent);
}

void print_array(TextBuilder& out, const List& list, const JsonStyle& style, size_t level) {
  if (list.items.empty()) return out.add("[]");
  out.add("[");
  for (size_t i = 0; i < list.items.size(); ++i) {
    if (i > 0) out.add(style.item_separator);
    break_line(out, style, level + 1);
    print_json(out, list.items[i], style, level + 1);
  }
  break_line(out, style, level);
  out.add("]");
}

// JSON has strings as keys only; Python writes the JSON of other scalars between quotes.
void print_key(TextBuilder& out, const Value& key, const JsonStyle& style) {
  if (key.text() != nullptr) return print_json(out, key, style);
  if (key.list() != nullptr) throw Failure("'tojson' is given a dict with " + std::string(key.kind()) + " as a key.");
  out.add("\"");
  print_json(out, key, style);
  out.add("\"");
}

void print_object(TextBuilder& out, const Dict& dict, const JsonStyle& style, size_t level) {
  if (dict.items.empty()) return out.add("{}");
  std::vector<const std::pair<Value, Value>*> entries;
  for (const auto& entry : dict.items) entries.push_back(&entry);
  if (style.sort_keys) {
    std::stable_sort(entries.begin(), entries.end(),
                     [&](const auto* a, const auto* b) { return less(out.context(), a->first, b->first); });
  }
  out.add("{");
  for (size_t i = 0; i < entries.size(); ++i) {
    if (i > 0) out.add(style.item_separator);
    break_line(out, style, level + 1);
    print_key(out, entries[i]->first, style);
    out.add(style.key_separator);
    print_json(out, entries[i]->second, style, level + 1);
  }
  break_line(out, style, level);
  out.add("}");
}

std::string json_float(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
  return format_float(value);
}

}  // namespace

void print_json(TextBuilder& out, const Value& value, const JsonStyle& style, size_t level) {
  out.context().step();
  if (value.is_none()) {
    out.add("null");
  } else if (const bool* truth = value.boolean()) {
    out.add(*truth ? "true" : "false");
  } else if (const int64_t* integer = value.integer()) {
    out.add(std::to_string(*integer));
  } else if (value.big() != nullptr) {
    print(out, value);
  } else if (const double* number = value.floating()) {
    out.add(json_float(*number));
  } else if (const Text* text = value.text()) {
    print_string(out, *text, style.ascii);
  } else if (const List* list = value.list(); list != nullptr && list->kind <= List::group) {
    print_array(out, *list, style, level);
  } else if (const Dict* dict = value.dict()) {
    print_object(out, *dict, style, level);
  } else {
    require_defined(value);
    throw Failure("'tojson' is given " + std::string(value.kind()) + ", which JSON cannot express.");
  }
}

// The two ways of Python to put values into a text: format % values, and str.format(). What they add to the values,
// signs, digits and padding, has the origin of the format: a format in a message makes no text of the template.

namespace {

constexpr size_t widest_field = 1000;

struct FieldSpec {
  std::string fill = " ";
  char align = 0;   // < > ^ or =, which pads behind the sign
  char sign = '-';  // or + or a blank, for numbers that are not negative
  bool alternate = false, zeros = false;
  size_t width = 0;
  char grouping = 0;  // , or _ between digits
  std::optional<size_t> precision;
  char type = 0;
};

// A number in its parts.
struct NumberParts {
  std::string sign, prefix, whole, rest;
};

size_t read_size(std::string_view text, size_t& at) {
  size_t number = 0;
  for (; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at) {
    number = number * 10 + static_cast<size_t>(text[at] - '0');
    if (number > widest_field) {
      throw Failure("A field of a format is wider than " + std::to_string(widest_field) + ", which is the limit.");
    }
  }
  return number;
}

std::string grouped(const std::string& digits, char separator, size_t size) {
  std::string text;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % size == 0) text += separator;
    text += digits[i];
  }
  return text;
}

std::string shown(double value, std::chars_format form, size_t precision) {
  std::array<char, widest_field + 400> buffer{};
  const auto end =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, form, static_cast<int>(precision));
  return {buffer.data(), end.ptr};
}

// A float without a type: as str() gives it, or, with a precision, as 'g' but with a digit behind the point.
std::string plain_float(double value, const std::optional<size_t>& precision) {
  if (!precision) return format_float(value);
  const size_t digits = std::max<size_t>(*precision, 1);
  std::string text = shown(value, std::chars_format::scientific, digits - 1);
  const size_t e = text.find('e');
  const int exponent = std::atoi(text.c_str() + e + 1);
  std::string tail = text.substr(e);
  text.resize(e);
  if (exponent > -5 && exponent + 1 <= static_cast<int>(digits) - 1) {
    text = shown(value, std::chars_format::fixed,
                 digits - 1 - static_cast<size_t>(std::min(exponent, 0)) - static_cast<size_t>(std::max(exponent, 0)));
    tail.clear();
  }
  if (text.find('.') != std::string::npos) {
    text.resize(text.find_last_not_of('0') + 1);
    if (text.ends_with('.')) text.pop_back();
  }
  return tail.empty() && text.find('.') == std::string::npos ? text + ".0" : text + tail;
}

NumberParts float_parts(const FieldSpec& spec, double value) {
  NumberParts parts;
  const bool negative = std::signbit(value) && !std::isnan(value);
  parts.sign = negative ? "-" : spec.sign == '-' ? "" : std::string(1, spec.sign);
  const double size = std::abs(value);
  const char type = spec.type;
  const char small = static_cast<char>(type | 0x20);
  const size_t precision = spec.precision.value_or(6);
  std::string text;
  if (!std::isfinite(size)) {
    text = std::isnan(size) ? "nan" : "inf";
  } else if (type == 0) {
    text = plain_float(size, spec.precision);
  } else if (small == 'f') {
    text = shown(size, std::chars_format::fixed, precision);
  } else if (small == 'e') {
    text = shown(size, std::chars_format::scientific, precision);
  } else if (type == '%') {
    text = shown(size * 100, std::chars_format::fixed, precision);
  } else {
    text = shown(size, std::chars_format::general, std::max<size_t>(precision, 1));
  }
  if (spec.alternate && std::isfinite(size) && text.find('.') == std::string::npos &&
      text.find('e') == std::string::npos) {
    text += '.';
  }
  if (type == 'E' || type == 'F' || type == 'G') {
    for (char& c : text) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 0x20) : c;
  }
  if (type == '%') text += '%';
  const size_t end = std::isfinite(size) ? std::min(text.find_first_of(".eE%"), text.size()) : 0;
  parts.whole = text.substr(0, end);
  parts.rest = text.substr(end);
  return parts;
}

NumberParts int_parts(const FieldSpec& spec, const BigInteger& value) {
  NumberParts parts;
  parts.sign = value.negative() ? "-" : spec.sign == '-' ? "" : std::string(1, spec.sign);
  const char type = static_cast<char>(spec.type | 0x20);
  const int base = type == 'x' ? 16 : type == 'o' ? 8 : type == 'b' ? 2 : 10;
  parts.whole = value.digits(base);
  if (spec.type == 'X') {
    for (char& c : parts.whole) c = c >= 'a' ? static_cast<char>(c - 0x20) : c;
  }
  if (spec.alternate && base != 10) parts.prefix = std::string("0") + spec.type;
  return parts;
}

double float_of(const Value& value) {
  const double number = *value.as_number();
  if (value.big() != nullptr && std::isinf(number)) throw Failure("A whole number is too large for a float.");
  return number;
}

// Pads to the width of the field; `sign`: how many bytes at the beginning stay in front of padding by '='.
void add_field(TextBuilder& out, const FieldSpec& spec, char align, const Text& text, size_t sign, Origin origin) {
  out.context().use_text(text.size());
  const size_t size = count_characters(text.bytes());
  const size_t missing = spec.width > size ? spec.width - size : 0;
  const size_t before = align == '>' ? missing : align == '^' ? missing / 2 : 0;
  const auto pad = [&](size_t count) {
    for (size_t i = 0; i < count; ++i) out.add(spec.fill, origin);
  };
  pad(before);
  if (align == '=') {
    out.add(text, 0, sign);
    pad(missing);
    out.add(text, sign, text.size());
  } else {
    out.add(text);
    pad(missing - before);
  }
}

void add_number(TextBuilder& out, const FieldSpec& spec, NumberParts parts, Origin origin) {
  const size_t fixed = parts.sign.size() + parts.prefix.size() + parts.rest.size();
  const char align = spec.align == 0 ? '>' : spec.align;
  const size_t group = spec.type == 0 || std::string_view("bBoxX").find(spec.type) == std::string_view::npos ? 3 : 4;
  const auto whole = [&] { return spec.grouping == 0 ? parts.whole : grouped(parts.whole, spec.grouping, group); };
  if (align == '=' && spec.fill == "0" && !parts.whole.empty()) {  // zeros are grouped like other digits
    while (fixed + whole().size() < spec.width) parts.whole.insert(0, 1, '0');
  }
  const std::string text = parts.sign + parts.prefix + whole() + parts.rest;
  add_field(out, spec, align, Text(text, origin), parts.sign.size() + parts.prefix.size(), origin);
}

Text shortened(Context& context, const Text& text, const std::optional<size_t>& precision) {
  if (!precision) return text;
  context.use_text(text.size());
  const auto starts = character_starts(text.bytes());
  return text.part(0, starts[std::min(starts.size() - 1, *precision)]);
}

// The character of a number. Numbers do not say who wrote them, so it is no text of the template.
Text character_of(const Value& value) {
  const auto number = value.as_integer();
  if (!number || *number < 0 || *number > 0x10FFFF || (*number >= 0xD800 && *number <= 0xDFFF)) {
    throw Failure("A format wants the number of a character.");
  }
  return Text(encode_utf8(static_cast<int32_t>(*number)), Origin::content);
}

Text literal_of(Context& context, const Value& value, char conversion) {
  if (conversion == 's') return to_text(context, value);
  TextBuilder out(context);
  print_literal(out, value);
  return conversion == 'a' ? only_ascii(context, out.take()) : out.take();
}

// ---- format % values

class PrintfWriter {
 public:
  PrintfWriter(Context& context, const Text& format, const Value& values)
      : context_(context), format_(format), values_(values), out_(context) {
    const List* list = values.list();
    if (list != nullptr && list->is_tuple()) tuple_ = list;
  }

  Text run() {
    const std::string_view bytes = format_.bytes();
    for (size_t at = 0; at < bytes.size();) {
      context_.step();
      const size_t percent = std::min(bytes.find('%', at), bytes.size());
      out_.add(format_, at, percent - at);
      at = percent;
      if (at < bytes.size()) write_field(at);
    }
    // Python asks no more of a value that it could have looked into by name.
    const bool may_be_unused =
        values_.dict() != nullptr || values_.is_undefined() || (values_.list() != nullptr && tuple_ == nullptr);
    if (used_ < given() && !may_be_unused) {
      throw Failure("A format has fewer fields than the " + std::to_string(given()) + " values given.");
    }
    Text text = out_.take();
    text.set_safe(format_.is_safe());
    return text;
  }

 private:
  size_t given() const { return tuple_ == nullptr ? 1 : tuple_->items.size(); }

  const Value& next() {
    if (used_ >= given()) {
      throw Failure("A format has more fields than the " + std::to_string(given()) + " values given.");
    }
    const size_t index = used_++;
    return tuple_ == nullptr ? values_ : tuple_->items[index];
  }

  size_t size_at(std::string_view bytes, size_t& at, bool* negative) {
    if (at >= bytes.size() || bytes[at] != '*') return read_size(bytes, at);
    ++at;
    const auto size = next().as_integer();
    if (!size) throw Failure("A format wants the width of a field as a number.");
    if (*size < 0 && negative != nullptr) *negative = true;
    const auto width = static_cast<size_t>(std::abs(std::max<int64_t>(*size, -static_cast<int64_t>(widest_field) - 1)));
    if (width > widest_field) {
      throw Failure("A field of a format is wider than " + std::to_string(widest_field) + ", which is the limit.");
    }
    return *size < 0 && negative == nullptr ? 0 : width;
  }

  void write_field(size_t& at) {
    const std::string_view bytes = format_.bytes();
    const Origin origin = format_.origin(at);
    ++at;
    std::optional<Value> named;
    if (at < bytes.size() && bytes[at] == '(') {
      if (values_.dict() == nullptr)
        throw Failure("A format with %(name) is given " + std::string(values_.kind()) + "; it must be a dict.");
      size_t depth = 1, end = at + 1;
      for (; end < bytes.size() && depth > 0; ++end) depth += bytes[end] == '(' ? 1 : bytes[end] == ')' ? -1 : 0;
      const std::string_view name = bytes.substr(at + 1, end - at - 2);
      context_.step(values_.dict()->items.size() / 8);
      const Value* found = values_.dict()->find(name);
      if (found == nullptr)
        throw Failure("A format has the field " + quoted_name(name) + ", for which no value is given.");
      named = *found;
      at = end;
    }
    FieldSpec spec;
    bool left = false;
    for (; at < bytes.size() && std::string_view("-+ 0#").find(bytes[at]) != std::string_view::npos; ++at) {
      if (bytes[at] == '-') left = true;
      if (bytes[at] == '+' || (bytes[at] == ' ' && spec.sign == '-')) spec.sign = bytes[at];
      if (bytes[at] == '0') spec.zeros = true;
      if (bytes[at] == '#') spec.alternate = true;
    }
    spec.width = size_at(bytes, at, &left);
    if (at < bytes.size() && bytes[at] == '.') spec.precision = size_at(bytes, ++at, nullptr);
    while (at < bytes.size() && (bytes[at] == 'h' || bytes[at] == 'l' || bytes[at] == 'L')) ++at;
    constexpr std::string_view allowed = "sradiuoxXeEfFgGc%";
    if (at >= bytes.size() || allowed.find(bytes[at]) == std::string_view::npos) {
      throw Failure(
          "A format has '%' without one of the conversions s, r, a, d, i, u, o, x, X, e, E, f, F, g, G, c and %.");
    }
    spec.type = bytes[at++];
    if (spec.type == '%') return out_.add("%", origin);
    const Value& value = named ? *named : next();
    spec.align = left ? '<' : '>';
    if (std::string_view("sra").find(spec.type) != std::string_view::npos) {
      Text text = literal_of(context_, value, spec.type);
      if (format_.is_safe()) text = escaped(context_, text);
      return add_field(out_, spec, spec.align, shortened(context_, text, spec.precision), 0, origin);
    }
    if (spec.type == 'c') {
      if (value.text() != nullptr && count_characters(value.text()->bytes()) != 1)
        throw Failure("A format wants one character.");
      return add_field(out_, spec, spec.align, value.text() != nullptr ? *value.text() : character_of(value), 0,
                       origin);
    }
    if (!value.as_number()) throw Failure("A format wants a number and is given " + std::string(value.kind()) + ".");
    if (spec.zeros && !left) {
      spec.align = '=';
      spec.fill = "0";
    }
    if (std::string_view("eEfFgG").find(spec.type) != std::string_view::npos) {
      return add_number(out_, spec, float_parts(spec, float_of(value)), origin);
    }
    const bool decimal = std::string_view("diu").find(spec.type) != std::string_view::npos;
    if (value.floating() != nullptr && (!decimal || !std::isfinite(*value.floating()))) {
      throw Failure("A format wants an int and is given a float.");
    }
    if (decimal) spec.type = 'd';
    NumberParts parts = int_parts(
        spec, value.floating() != nullptr ? BigInteger::truncated(*value.floating()) : *value.as_big_integer());
    while (parts.whole.size() < spec.precision.value_or(0)) parts.whole.insert(0, 1, '0');
    add_number(out_, spec, std::move(parts), origin);
  }

  Context& context_;
  const Text& format_;
  const Value& values_;
  const List* tuple_ = nullptr;
  TextBuilder out_;
  size_t used_ = 0;
};

// ---- str.format()

// [[fill]align][sign][#][0][width][grouping][.precision][type]
FieldSpec read_spec(std::string_view text) {
  FieldSpec spec;
  size_t at = 0;
  const auto is_align = [&](size_t i) {
    return i < text.size() && std::string_view("<>=^").find(text[i]) != std::string_view::npos;
  };
  const auto take = [&](char c) {
    if (at >= text.size() || text[at] != c) return false;
    ++at;
    return true;
  };
  const size_t first = text.empty() ? 0 : code_point_at(text, 0).size;
  if (is_align(first)) {
    spec.fill = text.substr(0, first);
    at = first;
  }
  if (is_align(at)) spec.align = text[at++];
  if (at < text.size() && (text[at] == '+' || text[at] == '-' || text[at] == ' ')) spec.sign = text[at++];
  take('z');
  spec.alternate = take('#');
  if (take('0')) {
    spec.zeros = true;
    if (spec.align == 0) spec.fill = "0";
  }
  spec.width = read_size(text, at);
  if (at < text.size() && (text[at] == ',' || text[at] == '_')) spec.grouping = text[at++];
  if (take('.')) {
    const size_t begin = at;
    spec.precision = read_size(text, at);
    if (begin == at) throw Failure("A field of 'format' has a point without a precision behind it.");
  }
  if (at < text.size()) spec.type = text[at++];
  if (at < text.size()) throw Failure("The form " + quoted_name(text) + " of a field of 'format' has no meaning.");
  return spec;
}

void add_value(TextBuilder& out, const Value& value, std::string_view spec_text, Origin origin) {
  FieldSpec spec = read_spec(spec_text);
  const auto allow = [&](std::string_view types) {
    if (spec.type == 0 || types.find(spec.type) != std::string_view::npos) return;
    throw Failure("The form " + quoted_name(spec_text) + " of a field of 'format' has no meaning for " +
                  std::string(value.kind()) + ".");
  };
  if (value.text() != nullptr) {
    allow("s");
    if (spec.align == '=' || spec.sign != '-' || spec.grouping != 0 || spec.alternate) {
      throw Failure("The form " + quoted_name(spec_text) + " of a field of 'format' has no meaning for a string.");
    }
    return add_field(out, spec, spec.align == 0 ? '<' : spec.align,
                     shortened(out.context(), *value.text(), spec.precision), 0, origin);
  }
  if (!value.as_number()) {
    throw Failure("The form " + quoted_name(spec_text) + " of a field of 'format' has no meaning for " +
                  std::string(value.kind()) + ".");
  }
  if (spec.zeros && spec.align == 0) spec.align = '=';
  const bool is_real = std::string_view("eEfFgG%").find(spec.type) != std::string_view::npos && spec.type != 0;
  if (value.floating() != nullptr || is_real) {
    allow("eEfFgGn%");
    return add_number(out, spec, float_parts(spec, float_of(value)), origin);
  }
  allow("bcdnoxX");
  if (spec.precision) throw Failure("A field of 'format' has a precision for an int.");
  if (spec.type == 'c') return add_field(out, spec, spec.align == 0 ? '<' : spec.align, character_of(value), 0, origin);
  add_number(out, spec, int_parts(spec, *value.as_big_integer()), origin);
}

class BraceWriter {
 public:
  BraceWriter(Context& context, const Text& format, const Arguments& arguments)
      : context_(context), format_(format), arguments_(arguments) {}

  Text run() {
    TextBuilder out(context_);
    write(out, 0, format_.size(), 2);
    Text text = out.take();
    text.set_safe(format_.is_safe());
    return text;
  }

 private:
  void write(TextBuilder& out, size_t at, size_t end, int levels) {
    if (levels == 0) throw Failure("Fields of 'format' are nested too deep.");
    const std::string_view bytes = format_.bytes().substr(0, end);
    while (at < end) {
      context_.step();
      const size_t brace = std::min(bytes.find_first_of("{}", at), end);
      out.add(format_, at, brace - at);
      at = brace;
      if (at == end) break;
      if (at + 1 < end && bytes[at + 1] == bytes[at]) {
        out.add(format_, at, 1);
        at += 2;
        continue;
      }
      if (bytes[at] == '}') throw Failure("'format' has a brace without its partner.");
      size_t close = at + 1;
      for (int depth = 1; close < end; ++close) {
        depth += bytes[close] == '{' ? 1 : bytes[close] == '}' ? -1 : 0;
        if (depth == 0) break;
      }
      if (close == end) throw Failure("'format' has a brace without its partner.");
      write_field(out, at + 1, close, levels);
      at = close + 1;
    }
  }

  // name.attribute[index]!conversion:form
  void write_field(TextBuilder& out, size_t begin, size_t end, int levels) {
    const std::string_view field = format_.bytes().substr(begin, end - begin);
    size_t name_end = 0;
    for (bool in_brackets = false; name_end < field.size(); ++name_end) {
      if (field[name_end] == '[') in_brackets = true;
      if (field[name_end] == ']') in_brackets = false;
      if (!in_brackets && (field[name_end] == '!' || field[name_end] == ':')) break;
    }
    Value value = value_of(field.substr(0, name_end));
    size_t at = name_end;
    const Origin origin = format_.origin(begin - 1);
    if (at < field.size() && field[at] == '!') {
      const char conversion = at + 1 < field.size() ? field[at + 1] : '\0';
      at += 2;
      if (std::string_view("rsa").find(conversion) == std::string_view::npos ||
          (at < field.size() && field[at] != ':')) {
        throw Failure("A field of 'format' has '!' without r, s or a.");
      }
      value = literal_of(context_, value, conversion);
    }
    TextBuilder form(context_);
    if (at < field.size()) write(form, begin + at + 1, end, levels - 1);
    const Text spec = form.take();
    if (!format_.is_safe() || (value.text() != nullptr && value.text()->is_safe()))
      return add(out, value, spec, origin);
    TextBuilder plain(context_);
    add(plain, value, spec, origin);
    out.add(escaped(context_, plain.take()));
  }

  static void add(TextBuilder& out, const Value& value, const Text& spec, Origin origin) {
    if (spec.empty()) return print(out, value);
    // The fill is part of the form: what a message put there stays a message's.
    add_value(out, value, spec.bytes(), std::max(origin, spec.origin(0)));
  }

  Value value_of(std::string_view name) {
    const size_t first_end = std::min(name.find_first_of(".["), name.size());
    Value value = argument(name.substr(0, first_end));
    for (size_t at = first_end; at < name.size();) {
      context_.step();
      if (name[at] == '.') {
        const size_t end = std::min(name.find_first_of(".[", at + 1), name.size());
        value = attribute(context_, value, name.substr(at + 1, end - at - 1));
        at = end;
        continue;
      }
      const size_t close = name.find(']', at);
      if (name[at] != '[' || close == std::string_view::npos)
        throw Failure("A field of 'format' has a bracket without its partner.");
      const std::string_view key = name.substr(at + 1, close - at - 1);
      const auto number = index(key);
      value = item(context_, value, number ? Value(static_cast<int64_t>(*number)) : Value::content(key));
      at = close + 1;
    }
    return value;
  }

  static std::optional<size_t> index(std::string_view text) {
    size_t number = 0;
    const auto result = std::from_chars(text.data(), text.data() + text.size(), number);
    const bool whole =
        result.ec == std::errc() && result.ptr == text.data() + text.size() && number < (size_t{1} << 31);
    return whole ? std::optional(number) : std::nullopt;
  }

  const Value& argument(std::string_view name) {
    auto number = index(name);
    if (name.empty() || number) {
      const Numbering wanted = name.empty() ? Numbering::automatic : Numbering::given;
      if (numbering_ != Numbering::none && numbering_ != wanted) {
        throw Failure("'format' has fields with a number and fields without.");
      }
      numbering_ = wanted;
      if (name.empty()) number = next_++;
      if (*number < arguments_.positional.size()) return arguments_.positional[*number];
      throw Failure("'format' has more fields than the " + std::to_string(arguments_.positional.size()) +
                    " values given.");
    }
    for (const NamedArgument& argument : arguments_.named) {
      if (argument.name == name) return argument.value;
    }
    throw Failure("'format' has the field " + quoted_name(name) + ", for which no value is given.");
  }

  enum class Numbering { none, automatic, given };

  Context& context_;
  const Text& format_;
  const Arguments& arguments_;
  Numbering numbering_ = Numbering::none;
  size_t next_ = 0;
};

}  // namespace

Value format_printf(Context& context, const Text& format, const Value& values) {
  return PrintfWriter(context, format, values).run();
}

Value format_braces(Context& context, const Text& format, const Arguments& arguments) {
  return BraceWriter(context, format, arguments).run();
}

}  // namespace canopy::jinja
