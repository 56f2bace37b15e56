#include <algorithm>

#include "engine/text/jinja/operations.h"

namespace canopy::jinja {
namespace {

bool equal_lists(Context& context, const List& left, const List& right) {
  if (left.items.size() != right.items.size() || left.is_tuple != right.is_tuple) return false;
  for (size_t i = 0; i < left.items.size(); ++i) {
    if (!equal(context, left.items[i], right.items[i])) return false;
  }
  return true;
}

bool equal_dicts(Context& context, const Dict& left, const Dict& right) {
  if (left.items.size() != right.items.size()) return false;
  for (const auto& item : left.items) {
    const auto match = std::find_if(right.items.begin(), right.items.end(),
                                    [&](const auto& other) { return equal(context, item.first, other.first); });
    if (match == right.items.end() || !equal(context, item.second, match->second)) return false;
  }
  return true;
}

}  // namespace

void require_defined(const Value& value) {
  const Undefined* undefined = value.undefined();
  if (undefined == nullptr) return;
  throw Failure(undefined->what ? "An undefined value is used: " + *undefined->what + "."
                                : std::string("An undefined value is used."));
}

bool equal(Context& context, const Value& left, const Value& right) {
  context.step();
  if (left.as_number() && right.as_number()) {
    const auto a = left.as_integer();
    const auto b = right.as_integer();
    return a && b ? *a == *b : *left.as_number() == *right.as_number();
  }
  if (left.text() != nullptr && right.text() != nullptr) {
    if (left.text()->size() != right.text()->size()) return false;
    context.use_text(left.text()->size());
    return left.text()->bytes() == right.text()->bytes();
  }
  if (left.list() != nullptr && right.list() != nullptr) return equal_lists(context, *left.list(), *right.list());
  if (left.dict() != nullptr && right.dict() != nullptr) return equal_dicts(context, *left.dict(), *right.dict());
  if (left.object() != nullptr) return left.object() == right.object();
  return (left.is_none() && right.is_none()) || (left.is_undefined() && right.is_undefined());
}

bool less(Context& context, const Value& left, const Value& right) {
  context.step();
  require_defined(left);
  require_defined(right);
  if (left.as_number() && right.as_number()) {
    const auto a = left.as_integer();
    const auto b = right.as_integer();
    return a && b ? *a < *b : *left.as_number() < *right.as_number();
  }
  if (left.text() != nullptr && right.text() != nullptr) {
    context.use_text(std::min(left.text()->size(), right.text()->size()));
    return left.text()->bytes() < right.text()->bytes();
  }
  if (left.list() != nullptr && right.list() != nullptr) {
    const auto& a = left.list()->items;
    const auto& b = right.list()->items;
    for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
      if (!equal(context, a[i], b[i])) return less(context, a[i], b[i]);
    }
    return a.size() < b.size();
  }
  throw Failure("There is no order between " + std::string(left.kind()) + " and " + std::string(right.kind()) + ".");
}

size_t find_text(Context& context, std::string_view haystack, std::string_view needle, size_t from) {
  constexpr size_t bytes_compared_at_once = 64;
  if (from > haystack.size() || needle.size() > haystack.size() - from) return std::string_view::npos;
  const size_t cost_of_byte = 1 + needle.size() / bytes_compared_at_once;
  context.use_text((haystack.size() - from) * cost_of_byte);
  const size_t found = haystack.find(needle, from);
  // The text behind a hit was not searched: counting it as work would make split() quadratic.
  if (found != std::string_view::npos) context.return_text((haystack.size() - found - needle.size()) * cost_of_byte);
  return found;
}

bool contains(Context& context, const Value& container, const Value& item) {
  if (const Text* text = container.text()) {
    require_defined(item);
    const Text* needle = item.text();
    if (needle == nullptr) throw Failure("'in' looks for " + std::string(item.kind()) + " in a string.");
    return find_text(context, text->bytes(), needle->bytes()) != std::string_view::npos;
  }
  if (const List* list = container.list()) {
    return std::any_of(list->items.begin(), list->items.end(),
                       [&](const Value& candidate) { return equal(context, candidate, item); });
  }
  if (const Dict* dict = container.dict()) {
    return std::any_of(dict->items.begin(), dict->items.end(),
                       [&](const auto& entry) { return equal(context, entry.first, item); });
  }
  if (container.is_undefined()) return false;
  throw Failure("'in' looks into " + std::string(container.kind()) + "; it must be a string, a list or a dict.");
}

}  // namespace canopy::jinja
