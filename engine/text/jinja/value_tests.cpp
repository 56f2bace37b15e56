// The tests that may follow `is`: defined, string, ...

#include <algorithm>

#include "engine/base/printable.h"
#include "engine/text/jinja/builtins.h"
#include "engine/text/jinja/format_text.h"
#include "engine/text/jinja/operations.h"
#include "engine/text/jinja/text_operations.h"

namespace canopy::jinja {
namespace {

bool is_defined(Context&, const Value& v, const Arguments&) {
  return !v.is_undefined();
}
bool is_undefined(Context&, const Value& v, const Arguments&) {
  return v.is_undefined();
}
bool is_none(Context&, const Value& v, const Arguments&) {
  return v.is_none();
}
bool is_true(Context&, const Value& v, const Arguments&) {
  return v.boolean() != nullptr && *v.boolean();
}
bool is_false(Context&, const Value& v, const Arguments&) {
  return v.boolean() != nullptr && !*v.boolean();
}
bool is_boolean(Context&, const Value& v, const Arguments&) {
  return v.boolean() != nullptr;
}
bool is_integer(Context&, const Value& v, const Arguments&) {
  return v.is_int();
}
bool is_float(Context&, const Value& v, const Arguments&) {
  return v.floating() != nullptr;
}
bool is_number(Context&, const Value& v, const Arguments&) {
  return v.as_number().has_value();
}
bool is_string(Context&, const Value& v, const Arguments&) {
  return v.text() != nullptr;
}
bool is_mapping(Context&, const Value& v, const Arguments&) {
  return v.dict() != nullptr;
}
// What has a length and items by number or key: neither generators nor the views of a dict.
bool is_sequence_test(Context&, const Value& v, const Arguments&) {
  return v.object() == nullptr && is_iterable(v) && (v.list() == nullptr || !v.list()->is_view());
}
bool is_iterable_test(Context&, const Value& v, const Arguments&) {
  return is_iterable(v);
}
bool is_callable(Context&, const Value& v, const Arguments&) {
  return v.is_undefined() || (v.object() != nullptr && v.object()->callable());
}
bool is_escaped(Context&, const Value& v, const Arguments&) {
  return v.text() != nullptr && v.text()->is_safe();
}
bool is_lower(Context& context, const Value& v, const Arguments&) {
  return is_case(context, to_text(context, v), Case::lower);
}
bool is_upper(Context& context, const Value& v, const Arguments&) {
  return is_case(context, to_text(context, v), Case::upper);
}
bool names_filter(Context&, const Value& v, const Arguments&) {
  return v.text() != nullptr && is_filter(v.text()->bytes());
}
bool names_test(Context&, const Value& v, const Arguments&) {
  return v.text() != nullptr && is_test(v.text()->bytes());
}

const Value& only_argument(std::string_view test, const Arguments& arguments) {
  if (arguments.positional.size() == 1 && arguments.named.empty()) return arguments.positional.front();
  throw Failure("The test '" + std::string(test) + "' needs one value to compare with.");
}

bool is_equal(Context& context, const Value& v, const Arguments& arguments) {
  return equal(context, v, only_argument("equalto", arguments));
}
bool is_not_equal(Context& context, const Value& v, const Arguments& arguments) {
  return !equal(context, v, only_argument("ne", arguments));
}
bool is_less(Context& context, const Value& v, const Arguments& arguments) {
  return less(context, v, only_argument("lt", arguments));
}
bool is_greater(Context& context, const Value& v, const Arguments& arguments) {
  return less(context, only_argument("gt", arguments), v);
}
bool is_at_most(Context& context, const Value& v, const Arguments& arguments) {
  return less(context, v, only_argument("le", arguments)) || equal(context, v, only_argument("le", arguments));
}
bool is_at_least(Context& context, const Value& v, const Arguments& arguments) {
  return less(context, only_argument("ge", arguments), v) || equal(context, v, only_argument("ge", arguments));
}
bool is_in(Context& context, const Value& v, const Arguments& arguments) {
  return contains(context, only_argument("in", arguments), v);
}

// Identity, as far as values without identity have one: the same kind and equal.
bool is_same(Context& context, const Value& v, const Arguments& arguments) {
  const Value& other = only_argument("sameas", arguments);
  return v.kind() == other.kind() && equal(context, v, other);
}

bool divides(Context& context, const Value& v, const Value& divisor, int64_t rest) {
  return equal(context, apply(context, BinaryOp::modulo, v, divisor), rest);
}
bool is_even(Context& context, const Value& v, const Arguments&) {
  return divides(context, v, 2, 0);
}
bool is_odd(Context& context, const Value& v, const Arguments&) {
  return divides(context, v, 2, 1);
}
bool is_divisible(Context& context, const Value& v, const Arguments& arguments) {
  return divides(context, v, only_argument("divisibleby", arguments), 0);
}

constexpr Test tests[] = {
    {"!=", is_not_equal},
    {"<", is_less},
    {"<=", is_at_most},
    {"==", is_equal},
    {">", is_greater},
    {">=", is_at_least},
    {"boolean", is_boolean},
    {"callable", is_callable},
    {"defined", is_defined},
    {"divisibleby", is_divisible},
    {"eq", is_equal},
    {"equalto", is_equal},
    {"escaped", is_escaped},
    {"even", is_even},
    {"false", is_false},
    {"filter", names_filter},
    {"float", is_float},
    {"ge", is_at_least},
    {"greaterthan", is_greater},
    {"gt", is_greater},
    {"in", is_in},
    {"integer", is_integer},
    {"iterable", is_iterable_test},
    {"le", is_at_most},
    {"lessthan", is_less},
    {"lower", is_lower},
    {"lt", is_less},
    {"mapping", is_mapping},
    {"ne", is_not_equal},
    {"none", is_none},
    {"number", is_number},
    {"odd", is_odd},
    {"sameas", is_same},
    {"sequence", is_sequence_test},
    {"string", is_string},
    {"test", names_test},
    {"true", is_true},
    {"undefined", is_undefined},
    {"upper", is_upper},
};

}  // namespace

bool is_test(std::string_view name) {
  return std::any_of(std::begin(tests), std::end(tests), [&](const Test& test) { return test.name == name; });
}

bool apply_test(Context& context, std::string_view name, const Value& subject, const Arguments& arguments) {
  context.step();
  for (const Test& test : tests) {
    if (test.name == name) return test.holds(context, subject, arguments);
  }
  throw Failure("There is no test " + quoted_name(name) + " here.");
}

}  // namespace canopy::jinja
