// Filters of text.

#include <algorithm>

#include "engine/text/jinja/builtins.h"
#include "engine/text/jinja/format_text.h"
#include "engine/text/jinja/operations.h"
#include "engine/text/jinja/text_operations.h"

namespace canopy::jinja {
namespace {

// Any value as the text that a string filter works on.
Text text_of(Context& context, const Value& value) {
  return value.text() != nullptr ? *value.text() : to_text(context, value);
}

template <Text (*change)(Context&, const Text&)>
Value change_case(Context& context, const Value& subject, const Arguments& arguments) {
  const Parameters p("a change of case", arguments, {});
  return change(context, text_of(context, subject));
}

Value filter_title(Context& context, const Value& subject, const Arguments& arguments) {
  const Parameters p("title", arguments, {});
  return title(context, text_of(context, subject), WordStart::after_space_or_bracket);
}

Value filter_trim(Context& context, const Value& subject, const Arguments& arguments) {
  const Parameters p("trim", arguments, {"chars"});
  return strip(context, text_of(context, subject), p.text_or_null(0), Sides::both);
}

Value filter_replace(Context& context, const Value& subject, const Arguments& arguments) {
  const Parameters p("replace", arguments, {"old", "new", "count"}, 2);
  const int64_t limit = p.find(2) == nullptr || p.at(2).is_none() ? -1 : p.integer(2, -1);
  return replace(context, text_of(context, subject), text_of(context, p.at(0)), text_of(context, p.at(1)), limit);
}

Value filter_string(Context& context, const Value& subject, const Arguments& arguments) {
  const Parameters p("string", arguments, {});
  return text_of(context, subject);
}

Value filter_safe(Context&, const Value& subject, const Arguments& arguments) {
  const Parameters p("safe", arguments, {});
  return subject;  // nothing is escaped, so nothing has to be kept from it
}

Value filter_format(Context& context, const Value& subject, const Arguments& arguments) {
  if (!arguments.named.empty()) throw Failure("'format' takes no named arguments here.");
  return format_printf(context, text_of(context, subject), context.make(List{arguments.positional, true}));
}

// Indents lines but the first (unless `first`) and those that are empty (unless `blank`).
Value filter_indent(Context& context, const Value& subject, const Arguments& arguments) {
  constexpr int64_t widest = 1000;
  const Parameters p("indent", arguments, {"width", "first", "blank"});
  Text indent(std::string(4, ' '));
  if (p.find(0) != nullptr && p.at(0).text() != nullptr) {
    indent = p.text(0);
  } else if (p.find(0) != nullptr) {
    indent = Text(std::string(static_cast<size_t>(std::clamp<int64_t>(p.integer(0, 4), 0, widest)), ' '));
  }
  Text text = text_of(context, subject);
  text.append("\n", Origin::markup);
  TextBuilder out(context);
  bool is_first = true;
  for (const Value& line : split_lines(context, text, false)) {
    if (!is_first) out.add("\n");
    const bool indents = is_first ? p.truth(1, false) : p.truth(2, false) || !line.text()->empty();
    if (indents) out.add(indent);
    out.add(*line.text());
    is_first = false;
  }
  return out.take();
}

// Hugging Face's tojson: json.dumps without escaping what is not ASCII.
Value filter_tojson(Context& context, const Value& subject, const Arguments& arguments) {
  constexpr int64_t widest = 100;
  const Parameters p("tojson", arguments, {"ensure_ascii", "indent", "separators", "sort_keys"});
  JsonStyle style;
  style.ascii = p.truth(0, false);
  style.sort_keys = p.truth(3, false);
  if (p.find(1) != nullptr && p.at(1).text() != nullptr) {
    style.indent = std::string(p.text(1).bytes());
  } else if (p.find(1) != nullptr && !p.at(1).is_none()) {
    style.indent = std::string(static_cast<size_t>(std::clamp<int64_t>(p.integer(1, 0), 0, widest)), ' ');
  }
  if (style.indent) style.item_separator = ",";
  if (p.find(2) != nullptr && !p.at(2).is_none()) {
    const List* pair = p.at(2).list();
    if (pair == nullptr || pair->items.size() != 2 || pair->items[0].text() == nullptr ||
        pair->items[1].text() == nullptr) {
      throw Failure("The argument 'separators' of 'tojson' must be a pair of strings.");
    }
    style.item_separator = std::string(pair->items[0].text()->bytes());
    style.key_separator = std::string(pair->items[1].text()->bytes());
  }
  TextBuilder out(context);
  print_json(out, subject, style);
  return out.take();
}

constexpr Filter text_filter_list[] = {
    {"capitalize", change_case<capitalize>},
    {"format", filter_format},
    {"indent", filter_indent},
    {"lower", change_case<lower>},
    {"replace", filter_replace},
    {"safe", filter_safe},
    {"string", filter_string},
    {"title", filter_title},
    {"tojson", filter_tojson},
    {"trim", filter_trim},
    {"upper", change_case<upper>},
};

}  // namespace

std::span<const Filter> text_filters() {
  return text_filter_list;
}

}  // namespace canopy::jinja
