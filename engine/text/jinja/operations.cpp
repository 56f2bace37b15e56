#include "engine/text/jinja/operations.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "engine/base/text.h"
#include "engine/text/jinja/format_text.h"
#include "engine/text/jinja/methods.h"
#include "engine/text/jinja/text_operations.h"

namespace canopy::jinja {
namespace {

[[noreturn]] void fail_overflow() {
  throw Failure("The result of a calculation is too large for a float.");
}

[[noreturn]] void fail_zero() {
  throw Failure("A number is divided by zero.");
}

// Each operation on large numbers costs as their sizes, and takes no more time than a step where they are small.
void charge(Context& context, const BigInteger& left, const BigInteger& right) {
  context.step(1 + left.size() * right.size() / 16);
}

Value power(Context& context, const BigInteger& base, const BigInteger& exponent) {
  if (exponent.negative()) {
    if (base.zero()) fail_zero();
    return std::pow(base.to_double(), exponent.to_double());
  }
  const auto small = base.small();
  if (small && *small >= -1 && *small <= 1) {
    const bool odd = exponent.digits(2).back() == '1';
    return exponent.zero() || (*small == -1 && !odd) ? 1 : *small;
  }
  const auto times = exponent.small();
  if (!times || static_cast<size_t>(*times) > 4 * BigInteger::max_digits) {
    throw Failure("A whole number has more than " + std::to_string(BigInteger::max_digits) +
                  " digits, which is the limit.");
  }
  BigInteger result = 1;
  for (int bit = 62; bit >= 0; --bit) {
    charge(context, result, result);
    result = result * result;
    if ((*times >> bit & 1) != 0) result = result * base;
  }
  return result;
}

Value of_big_integers(Context& context, BinaryOp op, const BigInteger& left, const BigInteger& right) {
  charge(context, left, right);
  if (right.zero() && (op == BinaryOp::divide || op == BinaryOp::floor_divide || op == BinaryOp::modulo)) fail_zero();
  switch (op) {
    case BinaryOp::add: return left + right;
    case BinaryOp::subtract: return left - right;
    case BinaryOp::multiply: return left * right;
    case BinaryOp::divide: {
      const double ratio = BigInteger::ratio(left, right);
      if (std::isinf(ratio)) fail_overflow();
      return ratio;
    }
    case BinaryOp::floor_divide: return BigInteger::divide(left, right).first;
    case BinaryOp::modulo: return BigInteger::divide(left, right).second;
    case BinaryOp::power: return power(context, left, right);
  }
  return {};
}

// Python rounds quotients down, C++ towards zero.
int64_t floor_divided(int64_t left, int64_t right) {
  const int64_t quotient = left / right;
  return quotient - ((left % right != 0 && (left < 0) != (right < 0)) ? 1 : 0);
}

Value of_integers(Context& context, BinaryOp op, int64_t left, int64_t right) {
  int64_t result = 0;
  constexpr int64_t exact = int64_t{1} << 53;  // in a double
  switch (op) {
    case BinaryOp::add:
      if (!__builtin_add_overflow(left, right, &result)) return result;
      break;
    case BinaryOp::subtract:
      if (!__builtin_sub_overflow(left, right, &result)) return result;
      break;
    case BinaryOp::multiply:
      if (!__builtin_mul_overflow(left, right, &result)) return result;
      break;
    case BinaryOp::divide:
      if (right != 0 && left > -exact && left < exact && right > -exact && right < exact) {
        return static_cast<double>(left) / static_cast<double>(right);
      }
      break;
    case BinaryOp::floor_divide:
      if (right > 0 || right < -1) return floor_divided(left, right);
      break;
    case BinaryOp::modulo:
      if (right > 0 || right < -1) return left - floor_divided(left, right) * right;
      break;
    case BinaryOp::power: break;
  }
  return of_big_integers(context, op, left, right);
}

// Quotient, rounded down, and rest as Python computes them: the rest is exact and has the sign of the divisor.
std::pair<double, double> divided_floats(double left, double right) {
  double rest = std::fmod(left, right);
  double quotient = (left - rest) / right;
  if (rest != 0 && (rest < 0) != (right < 0)) {
    rest += right;
    quotient -= 1;
  }
  if (rest == 0) rest = std::copysign(0.0, right);
  if (quotient == 0) return {std::copysign(0.0, left / right), rest};
  const double whole = std::floor(quotient);
  return {quotient - whole > 0.5 ? whole + 1 : whole, rest};
}

Value of_floats(BinaryOp op, double left, double right) {
  if (right == 0 && (op == BinaryOp::divide || op == BinaryOp::floor_divide || op == BinaryOp::modulo)) fail_zero();
  switch (op) {
    case BinaryOp::add: return left + right;
    case BinaryOp::subtract: return left - right;
    case BinaryOp::multiply: return left * right;
    case BinaryOp::divide: return left / right;
    case BinaryOp::floor_divide: return divided_floats(left, right).first;
    case BinaryOp::modulo: return divided_floats(left, right).second;
    case BinaryOp::power: {
      if (left == 0 && right < 0) fail_zero();
      const double result = std::pow(left, right);
      if (std::isinf(result) && std::isfinite(left) && std::isfinite(right)) fail_overflow();
      if (std::isnan(result) && !std::isnan(left) && !std::isnan(right)) {
        throw Failure("A power of a negative number with a fraction is no real number.");
      }
      return result;
    }
  }
  return {};
}

Value repeat(Context& context, const Value& value, int64_t times) {
  const auto count = static_cast<size_t>(std::max<int64_t>(times, 0));
  if (const Text* text = value.text()) {
    if (text->empty()) return value;
    TextBuilder builder(context);
    for (size_t i = 0; i < count; ++i) builder.add(*text);
    Text repeated = builder.take();
    repeated.set_safe(text->is_safe());
    return repeated;
  }
  const List& list = *value.list();
  List result{{}, list.is_tuple() ? List::tuple : List::list};
  for (size_t i = 0; i < count && !list.items.empty(); ++i) {
    context.step(list.items.size());
    result.items.insert(result.items.end(), list.items.begin(), list.items.end());
  }
  return context.make(std::move(result));
}

bool is_sequence(const Value& value) {
  return value.text() != nullptr || (value.list() != nullptr && value.list()->kind <= List::group);
}

std::optional<Value> of_sequences(Context& context, BinaryOp op, const Value& left, const Value& right) {
  if (op == BinaryOp::add && left.text() != nullptr && right.text() != nullptr) {
    const bool safe = left.text()->is_safe() || right.text()->is_safe();
    TextBuilder builder(context);
    builder.add(safe ? escaped(context, *left.text()) : *left.text());
    builder.add(safe ? escaped(context, *right.text()) : *right.text());
    Text sum = builder.take();
    sum.set_safe(safe);
    return sum;
  }
  if (op == BinaryOp::add && left.list() != nullptr && right.list() != nullptr && is_sequence(left) &&
      is_sequence(right) && left.list()->is_tuple() == right.list()->is_tuple()) {
    context.step(left.list()->items.size() + right.list()->items.size());
    List sum = *left.list();
    sum.kind = sum.is_tuple() ? List::tuple : List::list;
    sum.items.insert(sum.items.end(), right.list()->items.begin(), right.list()->items.end());
    return context.make(std::move(sum));
  }
  if (op == BinaryOp::multiply && is_sequence(left) && right.as_integer()) {
    return repeat(context, left, *right.as_integer());
  }
  if (op == BinaryOp::multiply && is_sequence(right) && left.as_integer()) {
    return repeat(context, right, *left.as_integer());
  }
  if (op == BinaryOp::modulo && left.text() != nullptr) return format_printf(context, *left.text(), right);
  return std::nullopt;
}

}  // namespace

std::string_view spelling(BinaryOp op) {
  switch (op) {
    case BinaryOp::add: return "+";
    case BinaryOp::subtract: return "-";
    case BinaryOp::multiply: return "*";
    case BinaryOp::divide: return "/";
    case BinaryOp::floor_divide: return "//";
    case BinaryOp::modulo: return "%";
    case BinaryOp::power: return "**";
  }
  return "?";
}

Value apply(Context& context, BinaryOp op, const Value& left, const Value& right) {
  require_defined(left);
  if (op != BinaryOp::modulo || left.text() == nullptr) require_defined(right);
  const auto a = left.as_integer();
  const auto b = right.as_integer();
  if (a && b) return of_integers(context, op, *a, *b);
  const auto big_a = left.as_big_integer();
  const auto big_b = right.as_big_integer();
  if (big_a && big_b) return of_big_integers(context, op, *big_a, *big_b);
  if (left.as_number() && right.as_number()) {
    for (const Value* value : {&left, &right}) {
      if (value->big() != nullptr && std::isinf(*value->as_number())) fail_overflow();
    }
    return of_floats(op, *left.as_number(), *right.as_number());
  }
  if (auto result = of_sequences(context, op, left, right)) return *std::move(result);
  throw Failure("'" + std::string(spelling(op)) + "' has no meaning between " + std::string(left.kind()) + " and " +
                std::string(right.kind()) + ".");
}

Value negate(const Value& value) {
  require_defined(value);
  if (const auto number = value.as_big_integer()) return -*number;
  if (const double* number = value.floating()) return -*number;
  throw Failure("'-' has no meaning in front of " + std::string(value.kind()) + ".");
}

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
