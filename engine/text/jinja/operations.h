#pragma once
// The operators on values, by the rules that Jinja inherits from Python: arithmetic, comparison, items, attributes.

#include <functional>
#include <span>
#include <vector>

#include "engine/text/jinja/value.h"

namespace canopy::jinja {

// All throw Failure for operands that the operator does not take.

enum class BinaryOp { add, subtract, multiply, divide, floor_divide, modulo, power };
std::string_view spelling(BinaryOp op);

/// Division gives a float; % on a string formats it as printf does.
Value apply(Context& context, BinaryOp op, const Value& left, const Value& right);
Value negate(const Value& value);

/// The order of two numbers, exact between ints and floats too.
std::partial_ordering compare_numbers(const Value& left, const Value& right);
bool equal(Context& context, const Value& left, const Value& right);
/// Order of numbers, strings and lists.
bool less(Context& context, const Value& left, const Value& right);
/// Sets an entry of a dict that is being made. Throws Failure for a key that Python does not hash.
void set_item(Context& context, Dict& dict, const Value& key, Value value);
/// Whether a string holds a string, a list an item, a dict a key.
bool contains(Context& context, const Value& container, const Value& item);

/// First occurrence at `from` or behind, or npos. Charges what the worst case costs.
size_t find_text(Context& context, std::string_view haystack, std::string_view needle, size_t from = 0);

/// What gives items one after the other, once: at the end it is used up.
class Iterator : public Object {
 public:
  std::string_view kind() const override { return "a generator"; }
  virtual std::optional<Value> next(Context& context) = 0;
};

/// An iterator that computes an item when it is asked for it.
class Generator final : public Iterator {
 public:
  using Step = std::function<std::optional<Value>(Context&)>;

  /// depth: of what the step holds on to.
  Generator(size_t depth, Step step) : depth_(depth), step_(std::move(step)) {}

  size_t depth() const override { return depth_; }
  std::optional<Value> next(Context& context) override;

 private:
  size_t depth_;
  Step step_;  // empty when it is used up
  bool running_ = false;
};

/// A value for a generator over `source`, whose step may hold `arguments` too.
Value make_generator(Context& context, const Value& source, const Arguments& arguments, Generator::Step step);

/// What a loop visits: items of a list, keys of a mapping, characters of a string, what is left of a generator;
/// nothing for undefined.
std::shared_ptr<Iterator> iterate(Context& context, const Value& value);
/// All of it at once.
std::vector<Value> elements(Context& context, const Value& value);
bool is_iterable(const Value& value);
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
