#pragma once
// Values as text in the forms that Python gives them: str(), repr(), JSON, format % values and str.format().

#include <string>

#include "engine/text/jinja/value.h"

namespace canopy::jinja {

// What a message brought stays marked as content inside.

/// str(): what {{ value }} prints. Functions and their kind cannot be printed.
void print(TextBuilder& out, const Value& value);
Text to_text(Context& context, const Value& value);
/// Any value as the text that a string filter works on: a text itself keeps who wrote it.
Text text_of(Context& context, const Value& value);

/// repr(): strings in quotes.
void print_literal(TextBuilder& out, const Value& value);

/// The shortest decimal that reads back as the same double, e.g. "1.0", "1e-07", "inf".
std::string format_float(double value);

struct JsonStyle {
  bool ascii = false;                 // \u escapes for everything else
  std::optional<std::string> indent;  // a line for each item, indented by this for each level
  std::string item_separator = ", ", key_separator = ": ";
  bool sort_keys = false;
};
void print_json(TextBuilder& out, const Value& value, const JsonStyle& style, size_t level = 0);

/// format % values, with all that Python has. Values: one, a tuple of them, or a dict.
Value format_printf(Context& context, const Text& format, const Value& values);

/// str.format(), with all that Python has but '=' behind a name.
Value format_braces(Context& context, const Text& format, const Arguments& arguments);

}  // namespace canopy::jinja
