#include "engine/text/jinja/methods.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "engine/text/jinja/format_text.h"
#include "engine/text/jinja/operations.h"
#include "engine/text/jinja/text_operations.h"

namespace canopy::jinja {
namespace {

struct Method {
  std::string_view name;
  Value (*call)(Context&, const Value& self, const Arguments&);
};

// Whole text, or the part that the arguments from `index` on name as text[begin:end]; nothing where it begins behind
// the end.
struct Span {
  size_t begin = 0, end = 0;
};
std::optional<Span> span_of(Context& context, const Text& text, const Parameters& p, size_t index) {
  if (p.find(index) == nullptr && p.find(index + 1) == nullptr) return Span{0, text.size()};
  context.use_text(text.size());
  const auto starts = character_starts(text.bytes());
  const auto count = static_cast<int64_t>(starts.size()) - 1;
  const auto place = [&](size_t i, int64_t otherwise) {
    const bool given = p.find(i) != nullptr && !p.at(i).is_none();
    const int64_t at = given ? p.integer(i, 0) : otherwise;
    return at < 0 ? std::max<int64_t>(at + count, 0) : at;
  };
  const int64_t begin = place(index, 0), end = std::min(place(index + 1, count), count);
  if (begin > end) return std::nullopt;
  return Span{starts[static_cast<size_t>(begin)], starts[static_cast<size_t>(end)]};
}

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

// The last occurrence in a span, or npos.
size_t find_last(Context& context, std::string_view text, std::string_view sought, const Span& span) {
  context.use_text((span.end - span.begin) * (1 + sought.size() / 64));
  const size_t found = text.substr(span.begin, span.end - span.begin).rfind(sought);
  return found == std::string_view::npos ? found : span.begin + found;
}

// (text before the first or last separator, the separator, text behind it)
template <bool from_right>
Value call_partition(Context& context, const Value& self, const Arguments& arguments) {
  const Parameters p(from_right ? "rpartition" : "partition", arguments, {"sep"}, 1);
  const Text& text = *self.text();
  const Text& separator = p.text(0);
  if (separator.empty()) throw Failure("'partition' is given an empty separator.");
  const size_t found = from_right ? find_last(context, text.bytes(), separator.bytes(), {0, text.size()})
                                  : find_text(context, text.bytes(), separator.bytes());
  context.use_text(text.size());
  const Value nothing = Value::markup("");
  if (found == std::string_view::npos) {
    return context.make(
        List{from_right ? std::vector<Value>{nothing, nothing, self} : std::vector<Value>{self, nothing, nothing},
             List::tuple});
  }
  return context.make(List{
      {text.part(0, found), text.part(found, separator.size()), text.part(found + separator.size())}, List::tuple});
}

// Whether `text` begins or ends with the argument, or with one of a tuple.
Value matches_end(Context& context, const Value& self, const Parameters& p, bool at_start) {
  const auto span = span_of(context, *self.text(), p, 1);
  if (!span) return false;
  const std::string_view text = self.text()->bytes().substr(span->begin, span->end - span->begin);
  const auto matches = [&](const Value& affix) {
    if (affix.text() == nullptr) throw Failure("A string is compared with " + std::string(affix.kind()) + ".");
    context.use_text(affix.text()->size());
    return at_start ? text.starts_with(affix.text()->bytes()) : text.ends_with(affix.text()->bytes());
  };
  if (const List* choices = p.at(0).list(); choices != nullptr && choices->is_tuple()) {
    context.step(choices->items.size());
    return std::any_of(choices->items.begin(), choices->items.end(), matches);
  }
  return matches(p.at(0));
}

Value call_startswith(Context& context, const Value& self, const Arguments& arguments) {
  return matches_end(context, self, Parameters("startswith", arguments, {"prefix", "start", "end"}, 1), true);
}

Value call_endswith(Context& context, const Value& self, const Arguments& arguments) {
  return matches_end(context, self, Parameters("endswith", arguments, {"suffix", "start", "end"}, 1), false);
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
  return title(context, *self.text(), WordStart::after_what_has_no_case);
}

// The place of the argument in the text; -1, or a failure, where it is not in it.
template <bool last, bool must_be_there>
Value call_find(Context& context, const Value& self, const Arguments& arguments) {
  const Parameters p(must_be_there ? "index" : "find", arguments, {"sub", "start", "end"}, 1);
  const std::string_view text = self.text()->bytes();
  const std::string_view sought = p.text(0).bytes();
  size_t found = std::string_view::npos;
  if (const auto span = span_of(context, *self.text(), p, 1)) {
    found = last ? find_last(context, text, sought, *span)
                 : find_text(context, text.substr(0, span->end), sought, span->begin);
  }
  if (found != std::string_view::npos) return static_cast<int64_t>(count_characters(text.substr(0, found)));
  if (must_be_there) throw Failure("'index' looks for something that the string does not hold.");
  return -1;
}

Value call_count(Context& context, const Value& self, const Arguments& arguments) {
  const Parameters p("count", arguments, {"sub", "start", "end"}, 1);
  const auto span = span_of(context, *self.text(), p, 1);
  if (!span) return 0;
  const std::string_view text = self.text()->bytes().substr(0, span->end);
  const std::string_view sought = p.text(0).bytes();
  if (sought.empty()) {
    context.use_text(text.size());
    return static_cast<int64_t>(count_characters(text.substr(span->begin))) + 1;
  }
  int64_t count = 0;
  for (size_t at = span->begin; (at = find_text(context, text, sought, at)) != std::string_view::npos;
       at += sought.size()) {
    context.step();
    ++count;
  }
  return count;
}

Value call_join(Context& context, const Value& self, const Arguments& arguments) {
  const Parameters p("join", arguments, {"iterable"}, 1);
  const bool safe = self.text()->is_safe();
  TextBuilder builder(context);
  bool first = true;
  for (const Value& part : elements(context, p.at(0))) {
    if (part.text() == nullptr && !safe) {
      throw Failure("'join' is given " + std::string(part.kind()) + " among its strings.");
    }
    if (!std::exchange(first, false)) builder.add(*self.text());
    builder.add(safe ? escaped(context, to_text(context, part)) : *part.text());
  }
  return builder.take();
}

Value call_format(Context& context, const Value& self, const Arguments& arguments) {
  return format_braces(context, *self.text(), arguments);
}

Value call_format_map(Context& context, const Value& self, const Arguments& arguments) {
  const Parameters p("format_map", arguments, {"mapping"}, 1);
  if (p.at(0).dict() == nullptr)
    throw Failure("'format_map' is given " + std::string(p.at(0).kind()) + "; it must be a dict.");
  Arguments named;
  for (const auto& [key, value] : p.at(0).dict()->items) {
    context.step();
    if (key.text() != nullptr) named.named.push_back({std::string(key.text()->bytes()), value, key});
  }
  return format_braces(context, *self.text(), named);
}

template <Align align>
Value call_padded(Context& context, const Value& self, const Arguments& arguments) {
  const Parameters p("a method that pads", arguments, {"width", "fillchar"}, 1);
  return padded(context, *self.text(), p.integer(0, 0), p.find(1) == nullptr ? Text(" ") : p.text(1), align);
}

// Zeros behind the sign.
Value call_zfill(Context& context, const Value& self, const Arguments& arguments) {
  const Parameters p("zfill", arguments, {"width"}, 1);
  const Text& text = *self.text();
  const bool has_sign = text.bytes().starts_with('-') || text.bytes().starts_with('+');
  TextBuilder builder(context);
  builder.add(text, 0, has_sign ? 1 : 0);
  builder.add(padded(context, text.part(has_sign ? 1 : 0), std::max<int64_t>(p.integer(0, 0), 1) - (has_sign ? 1 : 0),
                     Text("0"), Align::right));
  return builder.take();
}

Value call_expandtabs(Context& context, const Value& self, const Arguments& arguments) {
  const Parameters p("expandtabs", arguments, {"tabsize"});
  const int64_t size = std::min<int64_t>(p.integer(0, 8), 1000);
  const Text& text = *self.text();
  TextBuilder out(context);
  int64_t column = 0;
  for (size_t at = 0; at < text.size();) {
    const CodePoint c = code_point_at(text.bytes(), at);
    if (c.value == '\t') {
      const int64_t blanks = size > 0 ? size - column % size : 0;
      out.add(std::string(static_cast<size_t>(blanks), ' '), text.origin(at));
      column += blanks;
    } else {
      out.add(text, at, c.size);
      column = c.value == '\n' || c.value == '\r' ? 0 : column + 1;
    }
    at += c.size;
  }
  return out.take();
}

// A dict from numbers of characters to what stands for them: none takes them away.
Value call_translate(Context& context, const Value& self, const Arguments& arguments) {
  const Parameters p("translate", arguments, {"table"}, 1);
  const Text& text = *self.text();
  TextBuilder out(context);
  for (size_t at = 0; at < text.size();) {
    const CodePoint c = code_point_at(text.bytes(), at);
    const Value other = item(context, p.at(0), c.value);
    if (const auto number = other.as_integer()) {
      if (*number < 0 || *number > 0x10FFFF) throw Failure("'translate' is given a number that is no character's.");
      out.add(encode_utf8(static_cast<int32_t>(*number)), Origin::content);  // a number does not say who wrote it
    } else if (other.text() != nullptr) {
      out.add(*other.text());
    } else if (!other.is_none()) {
      out.add(text, at, c.size);
    }
    at += c.size;
  }
  return out.take();
}

Value call_maketrans(Context& context, const Value&, const Arguments& arguments) {
  const Parameters p("maketrans", arguments, {"x", "y", "z"}, 1);
  const auto number_of = [](const Text& text, size_t at) { return Value(code_point_at(text.bytes(), at).value); };
  Dict table;
  if (p.find(1) == nullptr) {
    if (p.at(0).dict() == nullptr) throw Failure("'maketrans' with one argument must be given a dict.");
    for (const auto& [key, value] : p.at(0).dict()->items) {
      set_item(context, table, key.text() != nullptr && !key.text()->empty() ? number_of(*key.text(), 0) : key, value);
    }
    return context.make(std::move(table));
  }
  const auto from = character_starts(p.text(0).bytes()), to = character_starts(p.text(1).bytes());
  if (from.size() != to.size()) throw Failure("The first two arguments of 'maketrans' must have equal lengths.");
  for (size_t i = 0; i + 1 < from.size(); ++i) {
    set_item(context, table, number_of(p.text(0), from[i]), number_of(p.text(1), to[i]));
  }
  if (const Text* removed = p.text_or_null(2)) {
    for (const size_t at : character_starts(removed->bytes())) {
      if (at < removed->size()) set_item(context, table, number_of(*removed, at), None{});
    }
  }
  return context.make(std::move(table));
}

Value refuse_bytes(Context&, const Value&, const Arguments&) {
  throw Failure("'encode' is not supported: templates have no bytes here.");
}

// Whether there are characters, and all of them are of a kind; empty_too: no character will do.
template <bool (*is_kind)(int32_t), bool empty_too = false>
Value call_all(Context& context, const Value& self, const Arguments& arguments) {
  const Parameters p("a question about characters", arguments, {});
  const std::string_view text = self.text()->bytes();
  context.use_text(text.size());
  for (size_t at = 0; at < text.size();) {
    const CodePoint c = code_point_at(text, at);
    if (!c.valid || !is_kind(c.value)) return false;
    at += c.size;
  }
  return empty_too || !text.empty();
}

bool is_ascii(int32_t c) {
  return c < 0x80;
}

bool is_letter_or_digit(int32_t c) {
  return is_letter(c) || is_numeric(c);
}

Value call_isidentifier(Context& context, const Value& self, const Arguments& arguments) {
  const Parameters p("isidentifier", arguments, {});
  const std::string_view text = self.text()->bytes();
  context.use_text(text.size());
  for (size_t at = 0; at < text.size();) {
    const CodePoint c = code_point_at(text, at);
    const bool starts = c.valid && (c.value == '_' || is_letter(c.value));
    if (!starts && (at == 0 || !c.valid || !is_decimal_digit(c.value))) return false;
    at += c.size;
  }
  return !text.empty();
}

template <Case wanted>
Value call_is_case(Context& context, const Value& self, const Arguments& arguments) {
  const Parameters p("a question about case", arguments, {});
  return is_case(context, *self.text(), wanted);
}

template <List::Kind kind>
Value call_view(Context& context, const Value& self, const Arguments& arguments) {
  const Parameters p("a view of a dict", arguments, {});
  List view{{}, kind};
  for (const auto& [key, value] : self.dict()->items) {
    view.items.push_back(kind == List::keys     ? key
                         : kind == List::values ? value
                                                : context.make(List{{key, value}, List::tuple}));
  }
  return context.make(std::move(view));
}

Value call_fromkeys(Context& context, const Value&, const Arguments& arguments) {
  const Parameters p("fromkeys", arguments, {"iterable", "value"}, 1);
  Dict dict;
  for (const Value& key : elements(context, p.at(0)))
    set_item(context, dict, key, p.find(1) == nullptr ? Value(None{}) : p.at(1));
  return context.make(std::move(dict));
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
  const Parameters p("index", arguments, {"value", "start", "stop"}, 1);
  const auto& items = self.list()->items;
  const auto count = static_cast<int64_t>(items.size());
  const auto place = [&](size_t i, int64_t otherwise) {
    const int64_t at = p.integer(i, otherwise);
    return std::clamp<int64_t>(at < 0 ? at + count : at, 0, count);
  };
  for (int64_t i = place(1, 0); i < place(2, count); ++i) {
    if (equal(context, items[static_cast<size_t>(i)], p.at(0))) return i;
  }
  throw Failure("'index' looks for something that the list does not hold.");
}

Value call_list_count(Context& context, const Value& self, const Arguments& arguments) {
  const Parameters p("count", arguments, {"value"}, 1);
  const auto& items = self.list()->items;
  return static_cast<int64_t>(
      std::count_if(items.begin(), items.end(), [&](const Value& item) { return equal(context, item, p.at(0)); }));
}

Value call_isdisjoint(Context& context, const Value& self, const Arguments& arguments) {
  const Parameters p("isdisjoint", arguments, {"other"}, 1);
  const auto others = elements(context, p.at(0));
  return std::none_of(others.begin(), others.end(), [&](const Value& other) { return contains(context, self, other); });
}

Value call_bit_length(Context&, const Value& self, const Arguments& arguments) {
  const Parameters p("bit_length", arguments, {});
  return static_cast<int64_t>(self.as_big_integer()->bits());
}

Value call_bit_count(Context&, const Value& self, const Arguments& arguments) {
  const Parameters p("bit_count", arguments, {});
  return static_cast<int64_t>(self.as_big_integer()->bits_set());
}

Value call_is_integer(Context&, const Value& self, const Arguments& arguments) {
  const Parameters p("is_integer", arguments, {});
  return self.floating() == nullptr || std::trunc(*self.floating()) == *self.floating();
}

Value call_conjugate(Context&, const Value& self, const Arguments& arguments) {
  const Parameters p("conjugate", arguments, {});
  return self.floating() != nullptr ? self : Value(*self.as_big_integer());
}

// (numerator, denominator)
Value call_as_integer_ratio(Context& context, const Value& self, const Arguments& arguments) {
  const Parameters p("as_integer_ratio", arguments, {});
  if (self.floating() == nullptr) return context.make(List{{Value(*self.as_big_integer()), 1}, List::tuple});
  if (!std::isfinite(*self.floating())) throw Failure("A float that is not finite has no ratio.");
  double number = *self.floating();
  BigInteger denominator = 1;
  for (; std::trunc(number) != number; number *= 2) denominator = denominator * 2;
  return context.make(List{{Value(BigInteger::truncated(number)), Value(denominator)}, List::tuple});
}

constexpr Method text_methods[] = {
    {"capitalize", call_change<capitalize>},
    {"casefold", call_change<fold_case>},
    {"center", call_padded<Align::center>},
    {"count", call_count},
    {"encode", refuse_bytes},
    {"endswith", call_endswith},
    {"expandtabs", call_expandtabs},
    {"find", call_find<false, false>},
    {"format", call_format},
    {"format_map", call_format_map},
    {"index", call_find<false, true>},
    {"isalnum", call_all<is_letter_or_digit>},
    {"isalpha", call_all<is_letter>},
    {"isascii", call_all<is_ascii, true>},
    {"isdecimal", call_all<is_decimal_digit>},
    {"isdigit", call_all<is_digit>},
    {"isidentifier", call_isidentifier},
    {"islower", call_is_case<Case::lower>},
    {"isnumeric", call_all<is_numeric>},
    {"isprintable", call_all<is_printable, true>},
    {"isspace", call_all<is_space>},
    {"istitle", call_is_case<Case::title>},
    {"isupper", call_is_case<Case::upper>},
    {"join", call_join},
    {"ljust", call_padded<Align::left>},
    {"lower", call_change<lower>},
    {"lstrip", call_strip<Sides::left>},
    {"maketrans", call_maketrans},
    {"partition", call_partition<false>},
    {"removeprefix", call_removeprefix},
    {"removesuffix", call_removesuffix},
    {"replace", call_replace},
    {"rfind", call_find<true, false>},
    {"rindex", call_find<true, true>},
    {"rjust", call_padded<Align::right>},
    {"rpartition", call_partition<true>},
    {"rsplit", call_rsplit},
    {"rstrip", call_strip<Sides::right>},
    {"split", call_split},
    {"splitlines", call_splitlines},
    {"startswith", call_startswith},
    {"strip", call_strip<Sides::both>},
    {"swapcase", call_change<swap_case>},
    {"title", call_title},
    {"translate", call_translate},
    {"upper", call_change<upper>},
    {"zfill", call_zfill},
};

constexpr Method list_methods[] = {{"copy", call_copy}, {"count", call_list_count}, {"index", call_list_index}};
constexpr Method tuple_methods[] = {{"count", call_list_count}, {"index", call_list_index}};
constexpr Method view_methods[] = {{"isdisjoint", call_isdisjoint}};

constexpr Method dict_methods[] = {
    {"copy", call_copy},
    {"fromkeys", call_fromkeys},
    {"get", call_get},
    {"items", call_view<List::items_view>},
    {"keys", call_view<List::keys>},
    {"values", call_view<List::values>},
};

constexpr Method int_methods[] = {
    {"as_integer_ratio", call_as_integer_ratio},
    {"bit_count", call_bit_count},
    {"bit_length", call_bit_length},
    {"conjugate", call_conjugate},
    {"is_integer", call_is_integer},
};
constexpr Method float_methods[] = {
    {"as_integer_ratio", call_as_integer_ratio},
    {"conjugate", call_conjugate},
    {"is_integer", call_is_integer},
};

constexpr std::string_view list_changes[] = {"append", "clear", "extend", "insert", "pop", "remove", "reverse", "sort"};
constexpr std::string_view dict_changes[] = {"clear", "pop", "popitem", "setdefault", "update"};

// What a method of a safe text gives is safe too.
Value safe_result(Context& context, const Value& result) {
  if (const Text* text = result.text()) {
    context.use_text(text->size());
    Text copy = *text;
    copy.set_safe(true);
    return copy;
  }
  if (result.list() == nullptr) return result;
  List list{{}, result.list()->kind};
  for (const Value& part : result.list()->items) list.items.push_back(safe_result(context, part));
  return context.make(std::move(list));
}

// A method with the value that it belongs to.
class BoundMethod final : public Object {
 public:
  BoundMethod(Value self, const Method& method) : self_(std::move(self)), method_(method) {}

  std::string_view kind() const override { return "a method"; }
  bool callable() const override { return true; }
  size_t depth() const override { return self_.depth(); }
  Value call(Context& context, const Arguments& arguments) override {
    if (self_.text() == nullptr || !self_.text()->is_safe()) return method_.call(context, self_, arguments);
    Arguments given = arguments;  // what comes into a safe text is escaped first
    const bool pads = method_.name == "center" || method_.name == "ljust" || method_.name == "rjust";
    if (pads || method_.name == "replace") {
      if (given.positional.size() > 1 && given.positional[1].text() != nullptr) {
        given.positional[1] = escaped(context, *given.positional[1].text());
      }
    }
    return safe_result(context, method_.call(context, self_, given));
  }

 private:
  Value self_;
  const Method& method_;
};

}  // namespace

std::optional<Value> find_method(const Value& value, std::string_view name) {
  std::span<const Method> methods;
  std::span<const std::string_view> changes;
  if (value.text() != nullptr) methods = text_methods;
  if (const List* list = value.list()) {
    methods = list->kind == List::list ? std::span<const Method>(list_methods)
              : list->is_view()        ? std::span<const Method>(view_methods)
                                       : std::span<const Method>(tuple_methods);
    if (list->kind == List::list) changes = list_changes;
  }
  if (value.dict() != nullptr) {
    methods = dict_methods;
    changes = dict_changes;
  }
  if (value.as_number()) methods = value.floating() != nullptr ? std::span<const Method>(float_methods) : int_methods;
  for (const Method& method : methods) {
    if (method.name == name) return Value(std::make_shared<BoundMethod>(value, method));
  }
  if (std::find(changes.begin(), changes.end(), name) != changes.end()) {
    return Value::undefined("a template may not change " + std::string(value.kind()) +
                            "; it can make a new one, or keep values in a namespace()");
  }
  return std::nullopt;
}

}  // namespace canopy::jinja
