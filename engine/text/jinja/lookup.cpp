#include <algorithm>

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
  return text.part(starts[i], starts[i + 1] - starts[i]);
}

Value element(const List& list, int64_t index) {
  const auto count = static_cast<int64_t>(list.items.size());
  if (index < 0) index += count;
  if (index < 0 || index >= count) return Value::undefined("the list has no such item");
  return list.items[static_cast<size_t>(index)];
}

// The indices that a slice picks out of `count` things, by the rules of Python.
std::vector<size_t> sliced(Context& context, size_t count, const Value& begin, const Value& end, const Value& step) {
  const auto bound = [](const Value& value, int64_t otherwise) {
    if (value.is_none()) return otherwise;
    if (const auto number = value.as_integer()) return *number;
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

}  // namespace

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
  } else if (!value.is_undefined()) {
    throw Failure("A loop goes through " + std::string(value.kind()) + "; it must be a list, a dict or a string.");
  }
  return result;
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
    if (const List* list = value.list()) return element(*list, *index);
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
  if (const Object* object = value.object()) {
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
    return builder.take();
  }
  if (const List* list = value.list()) {
    List part{{}, list->is_tuple};
    for (const size_t i : sliced(context, list->items.size(), begin, end, step)) part.items.push_back(list->items[i]);
    return context.make(std::move(part));
  }
  throw Failure("A slice is taken of " + std::string(value.kind()) + "; it must be a list or a string.");
}

}  // namespace canopy::jinja
