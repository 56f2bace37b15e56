#include "engine/text/jinja/value.h"

#include <algorithm>

#include "engine/text/jinja/context.h"

namespace canopy::jinja {

std::optional<Value> Object::attribute(std::string_view) {
  return std::nullopt;
}

Value Object::call(Context&, const Arguments&) {
  throw Failure("It is " + std::string(kind()) + ", which cannot be called.");
}

void Object::print(TextBuilder&) {
  throw Failure("The value to be printed is " + std::string(kind()) + ", which has no text.");
}

Value::Value(const BigInteger& value) {
  if (const auto small = value.small()) {
    data_ = *small;
  } else {
    data_ = std::make_shared<const BigInteger>(value);
  }
}

Value::Value(List list) {
  list.depth = 1;
  for (const Value& item : list.items) list.depth = std::max(list.depth, item.depth() + 1);
  data_ = std::make_shared<const List>(std::move(list));
}

Value::Value(Dict dict) {
  dict.depth = 1;
  for (const auto& [key, value] : dict.items) dict.depth = std::max({dict.depth, key.depth() + 1, value.depth() + 1});
  data_ = std::make_shared<const Dict>(std::move(dict));
}

Value Value::undefined(std::string what) {
  Value value;
  value.data_ = Undefined{std::make_shared<const std::string>(std::move(what))};
  return value;
}

std::optional<int64_t> Value::as_integer() const {
  if (const int64_t* value = integer()) return *value;
  if (const bool* value = boolean()) return *value ? 1 : 0;
  return std::nullopt;
}

std::optional<BigInteger> Value::as_big_integer() const {
  if (const BigInteger* value = big()) return *value;
  if (const auto value = as_integer()) return BigInteger(*value);
  return std::nullopt;
}

std::shared_ptr<Object> Value::shared_object() const {
  const auto* held = std::get_if<std::shared_ptr<Object>>(&data_);
  return held == nullptr ? nullptr : *held;
}

std::optional<double> Value::as_number() const {
  if (const BigInteger* value = big()) return value->to_double();
  if (const double* value = floating()) return *value;
  if (const auto value = as_integer()) return static_cast<double>(*value);
  return std::nullopt;
}

bool Value::truthy() const {
  if (is_undefined() || is_none()) return false;
  if (big() != nullptr) return true;
  if (const auto number = as_number()) return *number != 0;
  if (const Text* value = text()) return !value->empty();
  if (const List* value = list()) return !value->items.empty();
  if (const Dict* value = dict()) return !value->items.empty();
  return true;
}

std::string_view Value::kind() const {
  if (is_undefined()) return "undefined";
  if (is_none()) return "none";
  if (boolean() != nullptr) return "a bool";
  if (is_int()) return "an int";
  if (floating() != nullptr) return "a float";
  if (text() != nullptr) return "a string";
  if (const List* value = list()) {
    constexpr std::array<std::string_view, 7> kinds = {
        "a list", "a tuple", "a tuple", "a range", "the keys of a dict", "the values of a dict", "the items of a dict"};
    return kinds[value->kind];
  }
  if (dict() != nullptr) return "a dict";
  return object()->kind();
}

size_t Value::depth() const {
  if (const List* value = list()) return value->depth;
  if (const Dict* value = dict()) return value->depth;
  if (const Object* value = object()) return value->depth();
  return 0;
}

const Value* Dict::find(std::string_view key) const {
  for (const auto& [name, value] : items) {
    if (const Text* text = name.text(); text != nullptr && text->bytes() == key) return &value;
  }
  return nullptr;
}

void Dict::set(std::string_view key, Value value) {
  for (auto& [name, old] : items) {
    if (const Text* text = name.text(); text != nullptr && text->bytes() == key) {
      old = std::move(value);
      return;
    }
  }
  items.emplace_back(Value::markup(key), std::move(value));
}

}  // namespace canopy::jinja
