#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "engine/text/jinja/format_text.h"
#include "engine/text/jinja/operations.h"

namespace canopy::jinja {
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

}  // namespace canopy::jinja
