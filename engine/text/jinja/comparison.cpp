#include <algorithm>
#include <cmath>

#include "engine/text/jinja/operations.h"

namespace canopy::jinja {
namespace {

// Lists of one family can be equal. Keys and items of dicts are sets.
List::Kind family(const List& list) {
  return list.kind == List::group ? List::tuple : list.kind == List::items_view ? List::keys : list.kind;
}

bool holds_all(Context& context, const List& list, const List& sought) {
  return std::all_of(sought.items.begin(), sought.items.end(), [&](const Value& item) {
    return std::any_of(list.items.begin(), list.items.end(),
                       [&](const Value& other) { return equal(context, item, other); });
  });
}

bool equal_lists(Context& context, const List& left, const List& right) {
  if (left.items.size() != right.items.size() || family(left) != family(right)) return false;
  if (left.kind == List::values) return &left == &right;
  if (left.is_view()) return holds_all(context, left, right);
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

std::partial_ordering compare_numbers(const Value& left, const Value& right) {
  const auto a = left.as_integer();
  const auto b = right.as_integer();
  if (a && b) return *a <=> *b;
  const double x = *left.as_number(), y = *right.as_number();
  if (left.floating() != nullptr && right.floating() != nullptr) return x <=> y;
  // Whole parts are compared exactly, then what is behind the point.
  const auto whole = [](const Value& value) {
    return value.floating() == nullptr ? *value.as_big_integer() : BigInteger::truncated(*value.floating());
  };
  if (!std::isfinite(left.floating() == nullptr ? 0 : x) || !std::isfinite(right.floating() == nullptr ? 0 : y)) {
    return (left.floating() == nullptr ? 0 : x) <=> (right.floating() == nullptr ? 0 : y);
  }
  if (const auto order = whole(left) <=> whole(right); order != 0) return order;
  const auto fraction = [](const Value& value) {
    return value.floating() == nullptr ? 0 : *value.floating() - std::trunc(*value.floating());
  };
  return fraction(left) <=> fraction(right);
}

bool equal(Context& context, const Value& left, const Value& right) {
  context.step();
  if (left.as_number() && right.as_number()) return compare_numbers(left, right) == 0;
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
  if (left.as_number() && right.as_number()) return compare_numbers(left, right) < 0;
  if (left.text() != nullptr && right.text() != nullptr) {
    context.use_text(std::min(left.text()->size(), right.text()->size()));
    return left.text()->bytes() < right.text()->bytes();
  }
  if (left.list() != nullptr && right.list() != nullptr &&
      std::max(left.list()->kind, right.list()->kind) <= List::group &&
      left.list()->is_tuple() == right.list()->is_tuple()) {
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
  if (auto* iterator = dynamic_cast<Iterator*>(container.object())) {
    while (auto candidate = iterator->next(context)) {
      if (equal(context, *candidate, item)) return true;
    }
    return false;
  }
  if (container.is_undefined()) return false;
  throw Failure("'in' looks into " + std::string(container.kind()) + "; it must be a string, a list or a dict.");
}

}  // namespace canopy::jinja
