// Filters of lists, and of whatever else can be looped over.

#include <algorithm>

#include "engine/base/printable.h"
#include "engine/text/jinja/builtins.h"
#include "engine/text/jinja/format_text.h"
#include "engine/text/jinja/operations.h"
#include "engine/text/jinja/text_operations.h"

namespace canopy::jinja {
namespace {

// "a.b.0" follows attributes and indices one after the other.
Value follow(Context& context, Value value, const Value& path) {
  if (path.as_integer()) return item(context, value, path);
  if (path.text() == nullptr) throw Failure("An attribute is named by " + std::string(path.kind()) + ".");
  std::string_view names = path.text()->bytes();
  while (true) {
    const std::string_view name = names.substr(0, names.find('.'));
    const bool is_index = !name.empty() && name.size() < 10 &&
                          std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
    // Keys first, as in value['name']: a key may be called "items".
    value = item(context, value, is_index ? Value(std::stoi(std::string(name))) : Value::markup(name));
    if (name.size() == names.size()) return value;
    names.remove_prefix(name.size() + 1);
  }
}

// The key of an item for sorting and comparing: an attribute, or the item; strings in lower case unless case_sensitive.
Value sort_key(Context& context, const Value& value, const Value* path, bool case_sensitive) {
  const Value key = path == nullptr || path->is_none() ? value : follow(context, value, *path);
  return !case_sensitive && key.text() != nullptr ? Value(lower(context, *key.text())) : key;
}

Value filter_length(Context& context, const Value& subject, const Arguments& arguments) {
  const Parameters p("length", arguments, {});
  return static_cast<int64_t>(length(context, subject));
}

Value filter_first(Context& context, const Value& subject, const Arguments& arguments) {
  const Parameters p("first", arguments, {});
  if (subject.list() != nullptr || subject.text() != nullptr) return item(context, subject, 0);
  const auto items = elements(context, subject);
  return items.empty() ? Value::undefined("'first' of nothing") : items.front();
}

Value filter_last(Context& context, const Value& subject, const Arguments& arguments) {
  const Parameters p("last", arguments, {});
  if (subject.list() != nullptr || subject.text() != nullptr) return item(context, subject, -1);
  const auto items = elements(context, subject);
  return items.empty() ? Value::undefined("'last' of nothing") : items.back();
}

Value filter_list(Context& context, const Value& subject, const Arguments& arguments) {
  const Parameters p("list", arguments, {});
  return context.make_list(elements(context, subject));
}

Value filter_join(Context& context, const Value& subject, const Arguments& arguments) {
  const Parameters p("join", arguments, {"d", "attribute"});
  TextBuilder out(context);
  bool first = true;
  for (const Value& element : elements(context, subject)) {
    if (!std::exchange(first, false) && p.find(0) != nullptr) print(out, p.at(0));
    const bool by_attribute = p.find(1) != nullptr && !p.at(1).is_none();
    print(out, by_attribute ? follow(context, element, p.at(1)) : element);
  }
  return out.take();
}

Value filter_items(Context& context, const Value& subject, const Arguments& arguments) {
  const Parameters p("items", arguments, {});
  if (subject.is_undefined()) return context.make_list({});
  const Dict* dict = subject.dict();
  if (dict == nullptr) throw Failure("'items' is given " + std::string(subject.kind()) + "; it must be a dict.");
  std::vector<Value> pairs;
  for (const auto& [key, value] : dict->items) pairs.push_back(context.make(List{{key, value}, true}));
  return context.make_list(std::move(pairs));
}

Value filter_reverse(Context& context, const Value& subject, const Arguments& arguments) {
  const Parameters p("reverse", arguments, {});
  if (subject.text() != nullptr) return slice(context, subject, None{}, None{}, -1);
  auto items = elements(context, subject);
  std::reverse(items.begin(), items.end());
  return context.make_list(std::move(items));
}

std::vector<Value> sorted(Context& context, std::vector<Value> items, const Value* path, bool case_sensitive,
                          bool backwards) {
  std::vector<std::pair<Value, Value>> keyed;
  for (Value& element : items) {
    Value key = sort_key(context, element, path, case_sensitive);
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
      sorted(context, elements(context, subject), p.find(2), p.truth(1, false), p.truth(0, false)));
}

Value filter_dictsort(Context& context, const Value& subject, const Arguments& arguments) {
  const Parameters p("dictsort", arguments, {"case_sensitive", "by", "reverse"});
  const Value pairs = filter_items(context, subject, {});
  const Value path = p.find(1) != nullptr && p.text(1).bytes() == "value" ? 1 : 0;
  return context.make_list(sorted(context, pairs.list()->items, &path, p.truth(0, false), p.truth(2, false)));
}

Value filter_unique(Context& context, const Value& subject, const Arguments& arguments) {
  const Parameters p("unique", arguments, {"case_sensitive", "attribute"});
  std::vector<Value> kept, keys;
  for (const Value& element : elements(context, subject)) {
    Value key = sort_key(context, element, p.find(1), p.truth(0, false));
    if (std::any_of(keys.begin(), keys.end(), [&](const Value& old) { return equal(context, old, key); })) continue;
    keys.push_back(std::move(key));
    kept.push_back(element);
  }
  return context.make_list(std::move(kept));
}

Value extreme(Context& context, std::string_view name, const Value& subject, const Arguments& arguments, bool largest) {
  const Parameters p(name, arguments, {"case_sensitive", "attribute"});
  auto items = sorted(context, elements(context, subject), p.find(1), p.truth(0, false), largest);
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
  for (const Value& element : elements(context, subject)) {
    const bool by_attribute = p.find(0) != nullptr && !p.at(0).is_none();
    total = apply(context, BinaryOp::add, total, by_attribute ? follow(context, element, p.at(0)) : element);
  }
  return total;
}

Value filter_attr(Context& context, const Value& subject, const Arguments& arguments) {
  const Parameters p("attr", arguments, {"name"}, 1);
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
  std::vector<Value> results;
  if (!subject.truthy()) return context.make_list({});  // none too, which no other filter goes through
  if (arguments.positional.empty()) {
    const Parameters p("map", arguments, {"attribute", "default"}, 1);
    for (const Value& element : elements(context, subject)) {
      Value found = follow(context, element, p.at(0));
      results.push_back(found.is_undefined() && p.find(1) != nullptr ? p.at(1) : std::move(found));
    }
    return context.make_list(std::move(results));
  }
  const Text* name = arguments.positional.front().text();
  if (name == nullptr) throw Failure("'map' needs the name of a filter, or attribute='...'.");
  const Arguments others = rest(arguments, 1);
  for (const Value& element : elements(context, subject)) {
    results.push_back(apply_filter(context, name->bytes(), element, others));
  }
  return context.make_list(std::move(results));
}

// Items (or an attribute of them) that pass a test, or, where none is named, are true.
Value chosen(Context& context, const Value& subject, const Arguments& arguments, bool by_attribute, bool wanted) {
  if (by_attribute && arguments.positional.empty()) throw Failure("A filter needs the name of an attribute.");
  const size_t first = by_attribute ? 1 : 0;
  const Value* test = arguments.positional.size() > first ? &arguments.positional[first] : nullptr;
  if (test != nullptr && test->text() == nullptr) throw Failure("A filter needs the name of a test.");
  const Arguments others = rest(arguments, first + 1);
  std::vector<Value> kept;
  if (!subject.truthy()) return context.make_list({});
  for (const Value& element : elements(context, subject)) {
    const Value looked_at = by_attribute ? follow(context, element, arguments.positional[0]) : element;
    const bool passes =
        test == nullptr ? looked_at.truthy() : apply_test(context, test->text()->bytes(), looked_at, others);
    if (passes == wanted) kept.push_back(element);
  }
  return context.make_list(std::move(kept));
}

template <bool by_attribute, bool wanted>
Value filter_choose(Context& context, const Value& subject, const Arguments& arguments) {
  return chosen(context, subject, arguments, by_attribute, wanted);
}

constexpr Filter list_filter_list[] = {
    {"attr", filter_attr},
    {"count", filter_length},
    {"dictsort", filter_dictsort},
    {"first", filter_first},
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
    {"select", filter_choose<false, true>},
    {"selectattr", filter_choose<true, true>},
    {"sort", filter_sort},
    {"sum", filter_sum},
    {"unique", filter_unique},
};

}  // namespace

std::span<const Filter> list_filters() {
  return list_filter_list;
}

Value apply_filter(Context& context, std::string_view name, const Value& subject, const Arguments& arguments) {
  context.step();
  for (const auto& family : {text_filters(), list_filters(), number_filters()}) {
    for (const Filter& filter : family) {
      if (filter.name == name) return filter.apply(context, subject, arguments);
    }
  }
  throw Failure("There is no filter " + quoted_name(name) + " here.");
}

}  // namespace canopy::jinja
