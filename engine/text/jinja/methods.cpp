#include "engine/text/jinja/methods.h"

#include <algorithm>
#include <array>
#include <span>

#include "engine/text/jinja/format_text.h"
#include "engine/text/jinja/operations.h"
#include "engine/text/jinja/text_operations.h"

namespace canopy::jinja {
namespace {

struct Method {
  std::string_view name;
  Value (*call)(Context&, const Value& self, const Arguments&);
};

template <Sides sides>
Value call_strip(Context& context, const Value& self, const Arguments& arguments) {
  const Parameters p("strip", arguments, {"chars"});
  return strip(context, *self.text(), p.text_or_null(0), sides);
}

Value call_split(Context& context, const Value& self, const Arguments& arguments) {
  const Parameters p("split", arguments, {"sep", "maxsplit"});
  return context.make_list(split(context, *self.text(), p.text_or_null(0), p.integer(1, -1)));
}

Value call_rsplit(Context& context, const Value& self, const Arguments& arguments) {
  const Parameters p("rsplit", arguments, {"sep", "maxsplit"});
  return context.make_list(split_from_right(context, *self.text(), p.text_or_null(0), p.integer(1, -1)));
}

Value call_splitlines(Context& context, const Value& self, const Arguments& arguments) {
  const Parameters p("splitlines", arguments, {"keepends"});
  return context.make_list(split_lines(context, *self.text(), p.truth(0, false)));
}

// [text before the first separator, the separator, text behind it]
Value call_partition(Context& context, const Value& self, const Arguments& arguments) {
  const Parameters p("partition", arguments, {"sep"}, 1);
  const Text& text = *self.text();
  const Text& separator = p.text(0);
  if (separator.empty()) throw Failure("'partition' is given an empty separator.");
  const size_t found = find_text(context, text.bytes(), separator.bytes());
  context.use_text(text.size());
  if (found == std::string_view::npos) return context.make(List{{self, Value::markup(""), Value::markup("")}, true});
  return context.make(
      List{{text.part(0, found), text.part(found, separator.size()), text.part(found + separator.size())}, true});
}

// Whether `text` begins or ends with the argument, or with one of a tuple.
Value matches_end(Context& context, const Value& self, const Parameters& p, bool at_start) {
  const std::string_view text = self.text()->bytes();
  const auto matches = [&](const Value& affix) {
    if (affix.text() == nullptr) throw Failure("A string is compared with " + std::string(affix.kind()) + ".");
    context.use_text(affix.text()->size());
    return at_start ? text.starts_with(affix.text()->bytes()) : text.ends_with(affix.text()->bytes());
  };
  if (const List* choices = p.at(0).list()) {
    context.step(choices->items.size());
    return std::any_of(choices->items.begin(), choices->items.end(), matches);
  }
  return matches(p.at(0));
}

Value call_startswith(Context& context, const Value& self, const Arguments& arguments) {
  return matches_end(context, self, Parameters("startswith", arguments, {"prefix"}, 1), true);
}

Value call_endswith(Context& context, const Value& self, const Arguments& arguments) {
  return matches_end(context, self, Parameters("endswith", arguments, {"suffix"}, 1), false);
}

Value call_removeprefix(Context& context, const Value& self, const Arguments& arguments) {
  const Parameters p("removeprefix", arguments, {"prefix"}, 1);
  const Text& text = *self.text();
  context.use_text(text.size());
  return text.bytes().starts_with(p.text(0).bytes()) ? Value(text.part(p.text(0).size())) : self;
}

Value call_removesuffix(Context& context, const Value& self, const Arguments& arguments) {
  const Parameters p("removesuffix", arguments, {"suffix"}, 1);
  const Text& text = *self.text();
  context.use_text(text.size());
  return text.bytes().ends_with(p.text(0).bytes()) ? Value(text.part(0, text.size() - p.text(0).size())) : self;
}

Value call_replace(Context& context, const Value& self, const Arguments& arguments) {
  const Parameters p("replace", arguments, {"old", "new", "count"}, 2);
  return replace(context, *self.text(), p.text(0), p.text(1), p.integer(2, -1));
}

template <Text (*change)(Context&, const Text&)>
Value call_change(Context& context, const Value& self, const Arguments& arguments) {
  const Parameters p("a change of case", arguments, {});
  return change(context, *self.text());
}

Value call_title(Context& context, const Value& self, const Arguments& arguments) {
  const Parameters p("title", arguments, {});
  return title(context, *self.text(), WordStart::after_any_non_letter);
}

Value call_find(Context& context, const Value& self, const Arguments& arguments) {
  const Parameters p("find", arguments, {"sub"}, 1);
  const std::string_view text = self.text()->bytes();
  const size_t found = find_text(context, text, p.text(0).bytes());
  if (found == std::string_view::npos) return -1;
  return static_cast<int64_t>(count_characters(text.substr(0, found)));
}

Value call_rfind(Context& context, const Value& self, const Arguments& arguments) {
  const Parameters p("rfind", arguments, {"sub"}, 1);
  const std::string_view text = self.text()->bytes();
  context.use_text(text.size() * (1 + p.text(0).size() / 64));
  const size_t found = text.rfind(p.text(0).bytes());
  if (found == std::string_view::npos) return -1;
  return static_cast<int64_t>(count_characters(text.substr(0, found)));
}

Value call_count(Context& context, const Value& self, const Arguments& arguments) {
  const Parameters p("count", arguments, {"sub"}, 1);
  const std::string_view text = self.text()->bytes();
  const std::string_view sought = p.text(0).bytes();
  if (sought.empty()) return static_cast<int64_t>(length(context, self)) + 1;
  int64_t count = 0;
  for (size_t at = 0; (at = find_text(context, text, sought, at)) != std::string_view::npos; at += sought.size()) {
    context.step();
    ++count;
  }
  return count;
}

Value call_join(Context& context, const Value& self, const Arguments& arguments) {
  const Parameters p("join", arguments, {"iterable"}, 1);
  TextBuilder builder(context);
  bool first = true;
  for (const Value& part : elements(context, p.at(0))) {
    if (part.text() == nullptr) throw Failure("'join' is given " + std::string(part.kind()) + " among its strings.");
    if (!std::exchange(first, false)) builder.add(*self.text());
    builder.add(*part.text());
  }
  return builder.take();
}

Value call_format(Context& context, const Value& self, const Arguments& arguments) {
  return format_braces(context, *self.text(), arguments);
}

// Whether there are characters, and all of them are of a kind.
template <bool (*is_kind)(int32_t)>
Value call_all(Context& context, const Value& self, const Arguments& arguments) {
  const Parameters p("a question about characters", arguments, {});
  const std::string_view text = self.text()->bytes();
  context.use_text(text.size());
  for (size_t at = 0; at < text.size();) {
    const CodePoint c = code_point_at(text, at);
    if (!c.valid || !is_kind(c.value)) return false;
    at += c.size;
  }
  return !text.empty();
}

bool is_letter_or_digit(int32_t c) {
  return is_letter(c) || is_decimal_digit(c);
}

// Whether a change of case leaves a text with letters as it is.
template <Text (*change)(Context&, const Text&), Text (*opposite)(Context&, const Text&)>
Value call_is_case(Context& context, const Value& self, const Arguments& arguments) {
  const Parameters p("a question about case", arguments, {});
  const std::string_view text = self.text()->bytes();
  return change(context, *self.text()).bytes() == text && opposite(context, *self.text()).bytes() != text;
}

Value call_items(Context& context, const Value& self, const Arguments& arguments) {
  const Parameters p("items", arguments, {});
  std::vector<Value> pairs;
  for (const auto& [key, value] : self.dict()->items) pairs.push_back(context.make(List{{key, value}, true}));
  return context.make_list(std::move(pairs));
}

Value call_keys(Context& context, const Value& self, const Arguments& arguments) {
  const Parameters p("keys", arguments, {});
  return context.make_list(elements(context, self));
}

Value call_values(Context& context, const Value& self, const Arguments& arguments) {
  const Parameters p("values", arguments, {});
  std::vector<Value> values;
  for (const auto& entry : self.dict()->items) values.push_back(entry.second);
  return context.make_list(std::move(values));
}

Value call_get(Context& context, const Value& self, const Arguments& arguments) {
  const Parameters p("get", arguments, {"key", "default"}, 1);
  for (const auto& [key, value] : self.dict()->items) {
    if (equal(context, key, p.at(0))) return value;
  }
  return p.find(1) == nullptr ? Value(None{}) : p.at(1);
}

Value call_copy(Context&, const Value& self, const Arguments& arguments) {
  const Parameters p("copy", arguments, {});
  return self;  // nothing can change it
}

Value call_list_index(Context& context, const Value& self, const Arguments& arguments) {
  const Parameters p("index", arguments, {"value"}, 1);
  const auto& items = self.list()->items;
  for (size_t i = 0; i < items.size(); ++i) {
    if (equal(context, items[i], p.at(0))) return static_cast<int64_t>(i);
  }
  throw Failure("'index' looks for something that the list does not hold.");
}

Value call_list_count(Context& context, const Value& self, const Arguments& arguments) {
  const Parameters p("count", arguments, {"value"}, 1);
  const auto& items = self.list()->items;
  return static_cast<int64_t>(
      std::count_if(items.begin(), items.end(), [&](const Value& item) { return equal(context, item, p.at(0)); }));
}

Value refuse_change(Context&, const Value& self, const Arguments&) {
  throw Failure("A template may not change " + std::string(self.kind()) +
                "; it can make a new one, or keep values in a namespace().");
}

constexpr Method text_methods[] = {
    {"capitalize", call_change<capitalize>},
    {"count", call_count},
    {"endswith", call_endswith},
    {"find", call_find},
    {"format", call_format},
    {"isalnum", call_all<is_letter_or_digit>},
    {"isalpha", call_all<is_letter>},
    {"isdigit", call_all<is_decimal_digit>},
    {"islower", call_is_case<lower, upper>},
    {"isspace", call_all<is_space>},
    {"isupper", call_is_case<upper, lower>},
    {"join", call_join},
    {"lower", call_change<lower>},
    {"lstrip", call_strip<Sides::left>},
    {"partition", call_partition},
    {"removeprefix", call_removeprefix},
    {"removesuffix", call_removesuffix},
    {"replace", call_replace},
    {"rfind", call_rfind},
    {"rsplit", call_rsplit},
    {"rstrip", call_strip<Sides::right>},
    {"split", call_split},
    {"splitlines", call_splitlines},
    {"startswith", call_startswith},
    {"strip", call_strip<Sides::both>},
    {"title", call_title},
    {"upper", call_change<upper>},
};

constexpr Method list_methods[] = {
    {"append", refuse_change}, {"clear", refuse_change},   {"copy", call_copy},       {"count", call_list_count},
    {"extend", refuse_change}, {"index", call_list_index}, {"insert", refuse_change}, {"pop", refuse_change},
    {"remove", refuse_change}, {"reverse", refuse_change}, {"sort", refuse_change},
};

constexpr Method dict_methods[] = {
    {"clear", refuse_change},  {"copy", call_copy},     {"get", call_get},          {"items", call_items},
    {"keys", call_keys},       {"pop", refuse_change},  {"popitem", refuse_change}, {"setdefault", refuse_change},
    {"update", refuse_change}, {"values", call_values},
};

// A method with the value that it belongs to.
class BoundMethod final : public Object {
 public:
  BoundMethod(Value self, const Method& method) : self_(std::move(self)), method_(method) {}

  std::string_view kind() const override { return "a method"; }
  bool callable() const override { return true; }
  size_t depth() const override { return self_.depth(); }
  Value call(Context& context, const Arguments& arguments) override { return method_.call(context, self_, arguments); }

 private:
  Value self_;
  const Method& method_;
};

}  // namespace

std::optional<Value> find_method(const Value& value, std::string_view name) {
  std::span<const Method> methods;
  if (value.text() != nullptr) methods = text_methods;
  if (value.list() != nullptr) methods = list_methods;
  if (value.dict() != nullptr) methods = dict_methods;
  for (const Method& method : methods) {
    if (method.name == name) return Value(std::make_shared<BoundMethod>(value, method));
  }
  return std::nullopt;
}

}  // namespace canopy::jinja
