#pragma once
// The operators on values, with the rules that Jinja inherits from Python. All throw Failure for operands that the
// operator does not take.

#include <span>
#include <vector>

#include "engine/text/jinja/context.h"

namespace canopy::jinja {

enum class BinaryOp { add, subtract, multiply, divide, floor_divide, modulo, power };
std::string_view spelling(BinaryOp op);

/// Division gives a float; % on a string formats it as printf does. Results beyond 64 bits are an error.
Value apply(Context& context, BinaryOp op, const Value& left, const Value& right);
Value negate(const Value& value);

bool equal(Context& context, const Value& left, const Value& right);
/// Order of numbers, strings and lists.
bool less(Context& context, const Value& left, const Value& right);
/// Whether a string holds a string, a list an item, a dict a key.
bool contains(Context& context, const Value& container, const Value& item);

/// First occurrence at `from` or behind, or npos. Charges what the worst case costs.
size_t find_text(Context& context, std::string_view haystack, std::string_view needle, size_t from = 0);

/// The elements that a loop visits: items of a list, keys of a mapping, characters of a string; none for undefined.
std::vector<Value> elements(Context& context, const Value& value);
/// Elements of a value that has a number of them.
size_t length(Context& context, const Value& value);

/// value[key]: undefined where there is nothing.
Value item(Context& context, const Value& value, const Value& key);
/// value.name: methods first, then keys.
Value attribute(Context& context, const Value& value, std::string_view name);
/// value[begin:end:step] of a string or a list; none stands for what was left out.
Value slice(Context& context, const Value& value, const Value& begin, const Value& end, const Value& step);

/// Throws the Failure of using an undefined value; does nothing for others.
void require_defined(const Value& value);

}  // namespace canopy::jinja
