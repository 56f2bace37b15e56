// Filters of text.

#include <algorithm>

#include "engine/text/jinja/builtins.h"
#include "engine/text/jinja/format_text.h"
#include "engine/text/jinja/operations.h"
#include "engine/text/jinja/text_operations.h"

namespace canopy::jinja {
namespace {

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
  Text text = text_of(context, subject);
  Text to = text_of(context, p.at(1));
  if (!context.autoescape) {
    text.set_safe(false);
    return replace(context, text, text_of(context, p.at(0)), to, limit);
  }
  const bool old_is_safe = p.at(0).text() != nullptr && p.at(0).text()->is_safe();
  if (old_is_safe || to.is_safe()) text = escaped(context, text);
  if (text.is_safe()) to = escaped(context, to);
  Text result = replace(context, text, text_of(context, p.at(0)), to, limit);
  result.set_safe(text.is_safe());
  return result;
}

Value filter_string(Context& context, const Value& subject, const Arguments& arguments) {
  const Parameters p("string", arguments, {});
  return text_of(context, subject);
}

Value filter_format(Context& context, const Value& subject, const Arguments& arguments) {
  if (!arguments.named.empty() && !arguments.positional.empty()) {
    throw Failure("'format' takes values by position or by name, not both.");
  }
  if (arguments.named.empty()) {
    return format_printf(context, text_of(context, subject), context.make(List{arguments.positional, List::tuple}));
  }
  Dict values;
  for (const auto& [name, value, key] : arguments.named) set_item(context, values, key, value);
  return format_printf(context, text_of(context, subject), context.make(std::move(values)));
}

Value filter_center(Context& context, const Value& subject, const Arguments& arguments) {
  const Parameters p("center", arguments, {"width"});
  return padded(context, text_of(context, subject), p.integer(0, 80), Text(" "), Align::center);
}

// Cut behind the last word that fits in front of the end mark; within the leeway it is not cut.
Value filter_truncate(Context& context, const Value& subject, const Arguments& arguments) {
  const Parameters p("truncate", arguments, {"length", "killwords", "end", "leeway"});
  const Text mark = p.find(2) == nullptr ? Text("...") : p.text(2);
  const int64_t size = std::max<int64_t>(p.integer(0, 255), -1);
  const int64_t leeway = p.find(3) == nullptr || p.at(3).is_none() ? 5 : p.integer(3, 5);
  const int64_t kept = size - static_cast<int64_t>(count_characters(mark.bytes()));
  if (kept < 0 || leeway < 0) {
    throw Failure("'truncate' is given a length that its end mark does not fit into, or a leeway below zero.");
  }
  if (subject.text() == nullptr && !subject.is_undefined()) {
    if (static_cast<int64_t>(length(context, subject)) - leeway <= size) return subject;
    throw Failure("'truncate' is given " + std::string(subject.kind()) + "; it must be a string.");
  }
  const Text text = text_of(context, subject);
  context.use_text(text.size());
  const auto starts = character_starts(text.bytes());
  const auto count = static_cast<int64_t>(starts.size()) - 1;
  if (count - leeway <= size) return text;
  Text cut = text.part(0, starts[static_cast<size_t>(std::min(kept, count))]);
  if (!p.truth(1, false)) {
    const size_t blank = cut.bytes().rfind(' ');
    if (blank != std::string_view::npos) cut = cut.part(0, blank);
  }
  cut.set_safe(text.is_safe());
  return apply(context, BinaryOp::add, cut, mark);
}

Value filter_wordcount(Context& context, const Value& subject, const Arguments& arguments) {
  const Parameters p("wordcount", arguments, {});
  const Text text = text_of(context, subject);
  context.use_text(text.size());
  int64_t count = 0;
  bool in_word = false;
  for (size_t at = 0; at < text.size();) {
    const CodePoint c = code_point_at(text.bytes(), at);
    const bool is_part = c.valid && (c.value == '_' || is_letter(c.value) || is_numeric(c.value));
    if (is_part && !in_word) ++count;
    in_word = is_part;
    at += c.size;
  }
  return count;
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
  const bool safe = text.is_safe();
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
  Text indented = out.take();
  indented.set_safe(safe);
  return indented;
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
    {"center", filter_center},
    {"format", filter_format},
    {"indent", filter_indent},
    {"lower", change_case<lower>},
    {"replace", filter_replace},
    {"string", filter_string},
    {"title", filter_title},
    {"tojson", filter_tojson},
    {"trim", filter_trim},
    {"truncate", filter_truncate},
    {"upper", change_case<upper>},
    {"wordcount", filter_wordcount},
};

}  // namespace

std::span<const Filter> text_filters() {
  return text_filter_list;
}

}  // namespace canopy::jinja
