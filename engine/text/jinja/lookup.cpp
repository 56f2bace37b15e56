#include <algorithm>
#include <array>
#include <limits>

#include "engine/base/printable.h"
#include "engine/text/jinja/methods.h"
#include "engine/text/jinja/operations.h"

namespace canopy::jinja {
namespace {

Value character(Context& context, const Text& text, int64_t index) {
  context.use_text(text.size());
  const auto starts = character_starts(text.bytes());
  const auto count = static_cast<int64_t>(starts.size()) - 1;
  if (index < 0) index += count;
  if (index < 0 || index >= count) return Value::undefined("the string has no such character");
  const auto i = static_cast<size_t>(index);
  Text part = text.part(starts[i], starts[i + 1] - starts[i]);
  part.set_safe(text.is_safe());
  return part;
}

Value element(const List& list, int64_t index) {
  const auto count = static_cast<int64_t>(list.items.size());
  if (index < 0) index += count;
  if (index < 0 || index >= count) return Value::undefined("the list has no such item");
  return list.items[static_cast<size_t>(index)];
}

// The indices that a slice picks out of `count` things, by the rules of Python.
std::vector<size_t> sliced(Context& context, size_t count, const Value& begin, const Value& end, const Value& step) {
  constexpr int64_t far = std::numeric_limits<int64_t>::max();
  const auto bound = [](const Value& value, int64_t otherwise) {
    if (value.is_none()) return otherwise;
    if (const auto number = value.as_integer()) return *number;
    if (const BigInteger* big = value.big()) return big->negative() ? -far : far;
    throw Failure("A bound of a slice is " + std::string(value.kind()) + "; it must be an int.");
  };
  const int64_t by = bound(step, 1);
  if (by == 0) throw Failure("The step of a slice is zero.");
  const auto n = static_cast<int64_t>(count);
  const int64_t lowest = by > 0 ? 0 : -1;
  const int64_t highest = by > 0 ? n : n - 1;
  const auto place = [&](const Value& value, int64_t otherwise) {
    if (value.is_none()) return otherwise;
    const int64_t at = bound(value, 0);
    return std::clamp(at < 0 ? (at < -n ? -n - 1 : at) + n : at, lowest, highest);
  };
  const int64_t first = place(begin, by > 0 ? lowest : highest);
  const int64_t last = place(end, by > 0 ? highest : lowest);
  std::vector<size_t> picked;
  for (int64_t at = first; by > 0 ? at < last : at > last;) {
    picked.push_back(static_cast<size_t>(at));
    if (by > 0 ? by >= last - at : by <= last - at) break;
    at += by;
  }
  context.use_text(picked.size());
  return picked;
}

std::optional<Value> number_attribute(const Value& value, std::string_view name) {
  if (!value.as_number()) return std::nullopt;
  const bool whole = value.floating() == nullptr;
  if (name == "real" || (whole && name == "numerator")) return whole ? Value(*value.as_big_integer()) : value;
  if (name == "imag") return whole ? Value(0) : Value(0.0);
  if (whole && name == "denominator") return 1;
  return std::nullopt;
}

}  // namespace

std::optional<Value> Generator::next(Context& context) {
  if (running_) throw Failure("A generator asks itself for its next item.");
  if (!step_) return std::nullopt;
  const Context::Call level(context);
  context.step();
  struct Running {
    bool& flag;
    explicit Running(bool& f) : flag(f) { flag = true; }
    ~Running() { flag = false; }
  } const running(running_);
  std::optional<Value> item = step_(context);
  if (!item) step_ = nullptr;
  return item;
}

Value make_generator(Context& context, const Value& source, const Arguments& arguments, Generator::Step step) {
  size_t depth = source.depth();
  for (const Value& value : arguments.positional) depth = std::max(depth, value.depth());
  for (const auto& [name, value, key] : arguments.named) depth = std::max(depth, value.depth());
  context.check_depth(depth + 1);
  return std::shared_ptr<Object>(std::make_shared<Generator>(depth + 1, std::move(step)));
}

std::shared_ptr<Iterator> iterate(Context& context, const Value& value) {
  if (value.object() != nullptr) {
    if (auto iterator = std::dynamic_pointer_cast<Iterator>(value.shared_object())) return iterator;
  }
  return std::make_shared<Generator>(
      value.depth() + 1, [items = elements(context, value), at = size_t{0}](Context&) mutable -> std::optional<Value> {
        return at < items.size() ? std::optional(std::move(items[at++])) : std::nullopt;
      });
}

std::vector<Value> elements(Context& context, const Value& value) {
  std::vector<Value> result;
  if (const List* list = value.list()) {
    context.step(list->items.size());
    result = list->items;
  } else if (const Dict* dict = value.dict()) {
    context.step(dict->items.size());
    for (const auto& entry : dict->items) result.push_back(entry.first);
  } else if (const Text* text = value.text()) {
    context.use_text(text->size());
    context.step(count_characters(text->bytes()));
    const auto starts = character_starts(text->bytes());
    for (size_t i = 0; i + 1 < starts.size(); ++i)
      result.emplace_back(text->part(starts[i], starts[i + 1] - starts[i]));
  } else if (auto* iterator = dynamic_cast<Iterator*>(value.object())) {
    while (auto item = iterator->next(context)) result.push_back(*std::move(item));
  } else if (!value.is_undefined()) {
    throw Failure("A loop goes through " + std::string(value.kind()) + "; it must be a list, a dict or a string.");
  }
  return result;
}

bool is_iterable(const Value& value) {
  return value.is_undefined() || value.text() != nullptr || value.list() != nullptr || value.dict() != nullptr ||
         dynamic_cast<Iterator*>(value.object()) != nullptr;
}

namespace {

bool is_hashable(const Value& key) {
  if (key.dict() != nullptr) return false;
  if (const List* list = key.list()) {
    return (list->is_tuple() || list->kind == List::range) &&
           std::all_of(list->items.begin(), list->items.end(), is_hashable);
  }
  return true;
}

}  // namespace

void set_item(Context& context, Dict& dict, const Value& key, Value value) {
  if (!is_hashable(key)) {
    throw Failure("The key of a dict is " + std::string(key.kind()) + "; it must be a string, a number or a tuple.");
  }
  for (auto& [old_key, old_value] : dict.items) {
    if (!equal(context, old_key, key)) continue;
    old_value = std::move(value);
    return;
  }
  dict.items.emplace_back(key, std::move(value));
}

size_t length(Context& context, const Value& value) {
  if (const List* list = value.list()) return list->items.size();
  if (const Dict* dict = value.dict()) return dict->items.size();
  if (value.is_undefined()) return 0;
  if (const Text* text = value.text()) {
    context.use_text(text->size());
    return count_characters(text->bytes());
  }
  throw Failure("The length of " + std::string(value.kind()) + " is asked for; it must be a list, a dict or a string.");
}

Value item(Context& context, const Value& value, const Value& key) {
  require_defined(value);
  if (const auto index = key.as_integer()) {
    if (const List* list = value.list(); list != nullptr && !list->is_view()) return element(*list, *index);
    if (const Text* text = value.text()) return character(context, *text, *index);
  }
  if (const Dict* dict = value.dict()) {
    for (const auto& [name, held] : dict->items) {
      if (equal(context, name, key)) return held;
    }
  }
  if (const Text* name = key.text()) return attribute(context, value, name->bytes());
  return Value::undefined(std::string(value.kind()) + " has no such item");
}

Value attribute(Context& context, const Value& value, std::string_view name) {
  context.step();
  require_defined(value);
  if (auto method = find_method(value, name)) return *std::move(method);
  if (const Dict* dict = value.dict()) {
    context.step(dict->items.size() / 8);
    if (const Value* held = dict->find(name)) return *held;
  }
  if (const List* list = value.list()) {
    if (list->kind == List::group && name == "grouper") return list->items[0];
    if (list->kind == List::group && name == "list") return list->items[1];
    constexpr std::array<std::string_view, 3> bounds = {"start", "stop", "step"};
    const auto bound = std::find(bounds.begin(), bounds.end(), name);
    if (list->kind == List::range && bound != bounds.end())
      return list->bounds[static_cast<size_t>(bound - bounds.begin())];
  }
  if (auto number = number_attribute(value, name)) return *std::move(number);
  if (Object* object = value.object()) {
    if (auto held = object->attribute(name)) return *std::move(held);
  }
  return Value::undefined(std::string(value.kind()) + " has no attribute " + quoted_name(name));
}

Value slice(Context& context, const Value& value, const Value& begin, const Value& end, const Value& step) {
  require_defined(value);
  if (const Text* text = value.text()) {
    context.use_text(text->size());
    const auto starts = character_starts(text->bytes());
    TextBuilder builder(context);
    for (const size_t i : sliced(context, starts.size() - 1, begin, end, step)) {
      builder.add(*text, starts[i], starts[i + 1] - starts[i]);
    }
    Text part = builder.take();
    part.set_safe(text->is_safe());
    return part;
  }
  if (const List* list = value.list(); list != nullptr && !list->is_view()) {
    List part{{}, list->kind == List::group ? List::tuple : list->kind};
    const auto picked = sliced(context, list->items.size(), begin, end, step);
    for (const size_t i : picked) part.items.push_back(list->items[i]);
    if (part.kind == List::range) {
      int64_t by = 0;
      const int64_t first = picked.empty() ? list->bounds[0] : *part.items.front().integer();
      int64_t last = picked.empty() ? first : *part.items.back().integer();
      if (__builtin_mul_overflow(list->bounds[2], step.as_integer().value_or(1), &by) ||
          (!picked.empty() && __builtin_add_overflow(last, by, &last))) {
        throw Failure("The bounds of a part of a range do not fit into 64 bits.");
      }
      part.bounds = {first, last, by};
    }
    return context.make(std::move(part));
  }
  throw Failure("A slice is taken of " + std::string(value.kind()) + "; it must be a list or a string.");
}

}  // namespace canopy::jinja
