// Filters of lists and numbers, and the look-up of all filters.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "engine/base/text.h"
#include "engine/text/jinja/builtins.h"
#include "engine/text/jinja/format_text.h"
#include "engine/text/jinja/methods.h"
#include "engine/text/jinja/operations.h"
#include "engine/text/jinja/text_operations.h"

namespace canopy::jinja {
namespace {

// Filters of lists, and of whatever else can be looped over.

// "a.b.0" follows attributes and indices one after the other. What is missing on the way becomes `otherwise`, where
// that is not null or none.
Value follow(Context& context, Value value, const Value& path, const Value* otherwise = nullptr) {
  const auto enter = [&](const Value& key) {
    value = item(context, value, key);
    if (value.is_undefined() && otherwise != nullptr && !otherwise->is_none()) value = *otherwise;
  };
  if (path.is_none()) return value;
  if (path.text() == nullptr) {
    enter(path);
    return value;
  }
  std::string_view names = path.text()->bytes();
  while (true) {
    const std::string_view name = names.substr(0, names.find('.'));
    const bool is_index = !name.empty() && name.size() < 10 &&
                          std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
    // Keys first, as in value['name']: a key may be called "items".
    enter(is_index ? Value(std::stoi(std::string(name))) : Value::markup(name));
    if (name.size() == names.size()) return value;
    names.remove_prefix(name.size() + 1);
  }
}

Value without_case(Context& context, Value key, bool case_sensitive) {
  return !case_sensitive && key.text() != nullptr ? Value(lower(context, *key.text())) : key;
}

// The key of an item for comparing: an attribute, or the item; strings in lower case unless case_sensitive.
Value sort_key(Context& context, const Value& value, const Value* path, bool case_sensitive) {
  return without_case(context, path == nullptr ? value : follow(context, value, *path), case_sensitive);
}

// Paths with commas between them; none for the item itself.
std::vector<Value> paths_of(Context& context, const Value* paths) {
  if (paths == nullptr) return {None{}};
  if (paths->text() == nullptr) return {*paths};
  const Text comma(",");
  return split(context, *paths->text(), &comma, -1);
}

Value filter_length(Context& context, const Value& subject, const Arguments& arguments) {
  const Parameters p("length", arguments, {});
  return static_cast<int64_t>(length(context, subject));
}

Value filter_first(Context& context, const Value& subject, const Arguments& arguments) {
  const Parameters p("first", arguments, {});
  if (subject.text() != nullptr) return item(context, subject, 0);
  if (const List* list = subject.list(); list != nullptr && !list->items.empty()) return list->items.front();
  return iterate(context, subject)->next(context).value_or(Value::undefined("'first' of nothing"));
}

Value filter_last(Context& context, const Value& subject, const Arguments& arguments) {
  const Parameters p("last", arguments, {});
  if (subject.object() != nullptr) {
    throw Failure("'last' is given " + std::string(subject.kind()) + "; it must be a list, a dict or a string.");
  }
  if (subject.text() != nullptr) return item(context, subject, -1);
  const auto items = elements(context, subject);
  return items.empty() ? Value::undefined("'last' of nothing") : items.back();
}

Value filter_list(Context& context, const Value& subject, const Arguments& arguments) {
  const Parameters p("list", arguments, {});
  return context.make_list(elements(context, subject));
}

Value filter_join(Context& context, const Value& subject, const Arguments& arguments) {
  const Parameters p("join", arguments, {"d", "attribute"});
  const Value separator = p.find(0) == nullptr ? Value::markup("") : p.at(0);
  std::vector<Value> parts;
  for (Value& element : elements(context, subject)) {
    parts.push_back(p.find(1) == nullptr ? std::move(element) : follow(context, element, p.at(1)));
  }
  const auto is_safe = [](const Value& value) { return value.text() != nullptr && value.text()->is_safe(); };
  const bool safe = context.autoescape && (is_safe(separator) || std::any_of(parts.begin(), parts.end(), is_safe));
  TextBuilder out(context);
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) out.add(safe ? escaped(context, to_text(context, separator)) : to_text(context, separator));
    out.add(safe ? escaped(context, to_text(context, parts[i])) : to_text(context, parts[i]));
  }
  Text joined = out.take();
  joined.set_safe(safe);
  return joined;
}

std::vector<Value> pairs_of(Context& context, std::string_view filter, const Value& subject) {
  const Dict* dict = subject.dict();
  if (dict == nullptr) {
    throw Failure("'" + std::string(filter) + "' is given " + std::string(subject.kind()) + "; it must be a dict.");
  }
  std::vector<Value> pairs;
  for (const auto& [key, value] : dict->items) pairs.push_back(context.make(List{{key, value}, List::tuple}));
  return pairs;
}

Value filter_items(Context& context, const Value& subject, const Arguments& arguments) {
  const Parameters p("items", arguments, {});
  return make_generator(context, subject, {}, [subject, it = std::shared_ptr<Iterator>()](Context& c) mutable {
    if (!it) it = iterate(c, subject.is_undefined() ? Value() : c.make_list(pairs_of(c, "items", subject)));
    return it->next(c);
  });
}

Value filter_reverse(Context& context, const Value& subject, const Arguments& arguments) {
  const Parameters p("reverse", arguments, {});
  if (subject.text() != nullptr) return slice(context, subject, None{}, None{}, -1);
  auto items = elements(context, subject);
  std::reverse(items.begin(), items.end());
  Value reversed = context.make_list(std::move(items));
  if (subject.object() != nullptr) return reversed;  // of a generator, a list
  return std::shared_ptr<Object>(iterate(context, reversed));
}

std::vector<Value> sorted(Context& context, std::vector<Value> items, const std::vector<Value>& paths,
                          bool case_sensitive, bool backwards, const Value* otherwise = nullptr) {
  std::vector<std::pair<Value, Value>> keyed;
  for (Value& element : items) {
    std::vector<Value> keys;
    for (const Value& path : paths) {
      keys.push_back(without_case(context, follow(context, element, path, otherwise), case_sensitive));
    }
    Value key = keys.size() == 1 ? keys.front() : context.make_list(std::move(keys));
    keyed.emplace_back(std::move(key), std::move(element));
  }
  std::stable_sort(keyed.begin(), keyed.end(), [&](const auto& a, const auto& b) {
    return backwards ? less(context, b.first, a.first) : less(context, a.first, b.first);
  });
  items.clear();
  for (auto& [key, element] : keyed) items.push_back(std::move(element));
  return items;
}

Value filter_sort(Context& context, const Value& subject, const Arguments& arguments) {
  const Parameters p("sort", arguments, {"reverse", "case_sensitive", "attribute"});
  return context.make_list(
      sorted(context, elements(context, subject), paths_of(context, p.find(2)), p.truth(1, false), p.truth(0, false)));
}

Value filter_dictsort(Context& context, const Value& subject, const Arguments& arguments) {
  const Parameters p("dictsort", arguments, {"case_sensitive", "by", "reverse"});
  const std::string_view by = p.find(1) == nullptr ? "key" : p.text(1).bytes();
  if (by != "key" && by != "value") throw Failure("The argument 'by' of 'dictsort' must be key or value.");
  const bool by_value = by == "value";
  return context.make_list(sorted(context, pairs_of(context, "dictsort", subject), {by_value ? 1 : 0},
                                  p.truth(0, false), p.truth(2, false)));
}

// (what the items of the group have in common, the items)
Value filter_groupby(Context& context, const Value& subject, const Arguments& arguments) {
  const Parameters p("groupby", arguments, {"attribute", "default", "case_sensitive"}, 1);
  const Value& path = p.at(0);
  const bool case_sensitive = p.truth(2, false);
  std::vector<std::pair<Value, std::vector<Value>>> groups;  // by the key as it is compared
  for (Value& element : sorted(context, elements(context, subject), {path}, case_sensitive, false, p.find(1))) {
    Value key = without_case(context, follow(context, element, path, p.find(1)), case_sensitive);
    if (groups.empty() || !equal(context, groups.back().first, key))
      groups.emplace_back(std::move(key), std::vector<Value>());
    groups.back().second.push_back(std::move(element));
  }
  std::vector<Value> result;
  for (auto& [key, members] : groups) {
    if (!case_sensitive) key = follow(context, members.front(), path, p.find(1));
    result.push_back(context.make(List{{key, context.make_list(std::move(members))}, List::group}));
  }
  return context.make_list(std::move(result));
}

Value filter_unique(Context& context, const Value& subject, const Arguments& arguments) {
  const Parameters p("unique", arguments, {"case_sensitive", "attribute"});
  const Value path = p.find(1) == nullptr ? Value(None{}) : p.at(1);
  return make_generator(
      context, subject, arguments,
      [subject, path, case_sensitive = p.truth(0, false), keys = std::vector<Value>(),
       it = std::shared_ptr<Iterator>()](Context& c) mutable -> std::optional<Value> {
        if (!it) it = iterate(c, subject);
        while (auto element = it->next(c)) {
          Value key = sort_key(c, *element, &path, case_sensitive);
          if (std::any_of(keys.begin(), keys.end(), [&](const Value& old) { return equal(c, old, key); })) {
            continue;
          }
          keys.push_back(std::move(key));
          return element;
        }
        return std::nullopt;
      });
}

int64_t at_least_one(const Parameters& p, std::string_view filter, std::string_view name) {
  const int64_t number = p.integer(0, 1);
  if (number < 1)
    throw Failure("The argument '" + std::string(name) + "' of '" + std::string(filter) + "' must be at least 1.");
  return number;
}

Value filter_batch(Context& context, const Value& subject, const Arguments& arguments) {
  const Parameters p("batch", arguments, {"linecount", "fill_with"}, 1);
  const auto count = static_cast<size_t>(at_least_one(p, "batch", "linecount"));
  const Value fill = p.find(1) == nullptr ? Value(None{}) : p.at(1);
  return make_generator(
      context, subject, arguments,
      [subject, count, fill, it = std::shared_ptr<Iterator>()](Context& c) mutable -> std::optional<Value> {
        if (!it) it = iterate(c, subject);
        std::vector<Value> line;
        while (line.size() < count) {
          auto element = it->next(c);
          if (!element) break;
          line.push_back(*std::move(element));
        }
        if (line.empty()) return std::nullopt;
        while (!fill.is_none() && line.size() < count) {
          c.step();
          line.push_back(fill);
        }
        return c.make_list(std::move(line));
      });
}

Value filter_slice(Context& context, const Value& subject, const Arguments& arguments) {
  const Parameters p("slice", arguments, {"slices", "fill_with"}, 1);
  const auto count = static_cast<size_t>(at_least_one(p, "slice", "slices"));
  const Value fill = p.find(1) == nullptr ? Value(None{}) : p.at(1);
  return make_generator(context, subject, arguments,
                        [subject, count, fill, items = std::optional<std::vector<Value>>(), number = size_t{0},
                         at = size_t{0}](Context& c) mutable -> std::optional<Value> {
                          if (!items) items = elements(c, subject);
                          if (number == count) return std::nullopt;
                          const bool longer = number++ < items->size() % count;
                          std::vector<Value> part;
                          for (size_t left = items->size() / count + (longer ? 1 : 0); left > 0; --left) {
                            part.push_back((*items)[at++]);
                          }
                          if (!fill.is_none() && !longer) part.push_back(fill);
                          return c.make_list(std::move(part));
                        });
}

Value extreme(Context& context, std::string_view name, const Value& subject, const Arguments& arguments, bool largest) {
  const Parameters p(name, arguments, {"case_sensitive", "attribute"});
  const Value path = p.find(1) == nullptr ? Value(None{}) : p.at(1);
  auto items = sorted(context, elements(context, subject), {path}, p.truth(0, false), largest);
  return items.empty() ? Value::undefined("'" + std::string(name) + "' of nothing") : items.front();
}

Value filter_min(Context& context, const Value& subject, const Arguments& arguments) {
  return extreme(context, "min", subject, arguments, false);
}

Value filter_max(Context& context, const Value& subject, const Arguments& arguments) {
  return extreme(context, "max", subject, arguments, true);
}

Value filter_sum(Context& context, const Value& subject, const Arguments& arguments) {
  const Parameters p("sum", arguments, {"attribute", "start"});
  Value total = p.find(1) == nullptr ? Value(0) : p.at(1);
  if (total.text() != nullptr) throw Failure("'sum' does not add strings; 'join' does.");
  for (const Value& element : elements(context, subject)) {
    const bool by_attribute = p.find(0) != nullptr && !p.at(0).is_none();
    total = apply(context, BinaryOp::add, total, by_attribute ? follow(context, element, p.at(0)) : element);
  }
  return total;
}

Value filter_attr(Context& context, const Value& subject, const Arguments& arguments) {
  const Parameters p("attr", arguments, {"name"}, 1);
  require_defined(subject);
  // Unlike value.name, it does not look at keys.
  if (subject.dict() != nullptr && !find_method(subject, p.text(0).bytes())) {
    return Value::undefined("a dict has no attribute " + quoted_name(p.text(0).bytes()));
  }
  return attribute(context, subject, p.text(0).bytes());
}

// The arguments from `first` on.
Arguments rest(const Arguments& arguments, size_t first) {
  Arguments others;
  const size_t from = std::min(first, arguments.positional.size());
  others.positional.assign(arguments.positional.begin() + static_cast<std::ptrdiff_t>(from),
                           arguments.positional.end());
  others.named = arguments.named;
  return others;
}

Value filter_map(Context& context, const Value& subject, const Arguments& arguments) {
  return make_generator(context, subject, arguments,
                        [subject, arguments, others = rest(arguments, 1),
                         it = std::shared_ptr<Iterator>()](Context& c) mutable -> std::optional<Value> {
                          if (!it && !subject.truthy())
                            return std::nullopt;  // none too, which no other filter goes through
                          if (!it) it = iterate(c, subject);
                          const bool by_attribute = arguments.positional.empty();
                          if (by_attribute) {
                            const Parameters p("map", arguments, {"attribute", "default"}, 1);
                            auto element = it->next(c);
                            return element ? std::optional(follow(c, *element, p.at(0), p.find(1))) : std::nullopt;
                          }
                          const Text* name = arguments.positional.front().text();
                          if (name == nullptr) throw Failure("'map' needs the name of a filter, or attribute='...'.");
                          auto element = it->next(c);
                          return element ? std::optional(apply_filter(c, name->bytes(), *element, others))
                                         : std::nullopt;
                        });
}

// Items (or an attribute of them) that pass a test, or, where none is named, are true.
Value chosen(Context& context, const Value& subject, const Arguments& arguments, bool by_attribute, bool wanted) {
  const size_t first = by_attribute ? 1 : 0;
  return make_generator(
      context, subject, arguments,
      [subject, arguments, by_attribute, wanted, first, others = rest(arguments, first + 1),
       it = std::shared_ptr<Iterator>()](Context& c) mutable -> std::optional<Value> {
        if (!it && !subject.truthy()) return std::nullopt;
        if (!it) it = iterate(c, subject);
        if (by_attribute && arguments.positional.empty()) throw Failure("A filter needs the name of an attribute.");
        const Value* test = arguments.positional.size() > first ? &arguments.positional[first] : nullptr;
        if (test != nullptr && test->text() == nullptr) throw Failure("A filter needs the name of a test.");
        while (auto element = it->next(c)) {
          const Value looked_at = by_attribute ? follow(c, *element, arguments.positional[0]) : *element;
          const bool passes =
              test == nullptr ? looked_at.truthy() : apply_test(c, test->text()->bytes(), looked_at, others);
          if (passes == wanted) return element;
        }
        return std::nullopt;
      });
}

template <bool by_attribute, bool wanted>
Value filter_choose(Context& context, const Value& subject, const Arguments& arguments) {
  return chosen(context, subject, arguments, by_attribute, wanted);
}

// Filters of numbers, and default.

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

constexpr Filter list_filter_list[] = {
    {"abs", filter_abs},
    {"attr", filter_attr},
    {"batch", filter_batch},
    {"count", filter_length},
    {"d", filter_default},
    {"default", filter_default},
    {"dictsort", filter_dictsort},
    {"filesizeformat", filter_filesizeformat},
    {"first", filter_first},
    {"float", filter_float},
    {"groupby", filter_groupby},
    {"int", filter_int},
    {"items", filter_items},
    {"join", filter_join},
    {"last", filter_last},
    {"length", filter_length},
    {"list", filter_list},
    {"map", filter_map},
    {"max", filter_max},
    {"min", filter_min},
    {"reject", filter_choose<false, false>},
    {"rejectattr", filter_choose<true, false>},
    {"reverse", filter_reverse},
    {"round", filter_round},
    {"select", filter_choose<false, true>},
    {"selectattr", filter_choose<true, true>},
    {"slice", filter_slice},
    {"sort", filter_sort},
    {"sum", filter_sum},
    {"unique", filter_unique},
};

const Filter* find_filter(std::string_view name) {
  for (const auto& family : {text_filters(), std::span<const Filter>(list_filter_list)}) {
    for (const Filter& filter : family) {
      if (filter.name == name) return &filter;
    }
  }
  return nullptr;
}

}  // namespace

bool is_filter(std::string_view name) {
  return find_filter(name) != nullptr || name == "random";
}

Value apply_filter(Context& context, std::string_view name, const Value& subject, const Arguments& arguments) {
  context.step();
  if (const Filter* filter = find_filter(name)) return filter->apply(context, subject, arguments);
  if (name == "random") throw Failure("The filter 'random' is not supported: the same chat must give the same prompt.");
  throw Failure("There is no filter " + quoted_name(name) + " here.");
}

}  // namespace canopy::jinja
