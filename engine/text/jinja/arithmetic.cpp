#include <cmath>
#include <limits>

#include "engine/text/jinja/format_text.h"
#include "engine/text/jinja/operations.h"

namespace canopy::jinja {
namespace {

[[noreturn]] void fail_overflow() {
  throw Failure("The result of a calculation does not fit into 64 bits.");
}

Value power(int64_t base, int64_t exponent) {
  if (exponent < 0) return std::pow(static_cast<double>(base), static_cast<double>(exponent));
  if (base == 0 || base == 1) return exponent == 0 ? int64_t{1} : base;
  if (base == -1) return int64_t{exponent % 2 == 0 ? 1 : -1};
  int64_t result = 1;
  for (; exponent > 0; --exponent) {  // at most 63 times before it overflows
    if (__builtin_mul_overflow(result, base, &result)) fail_overflow();
  }
  return result;
}

// Python rounds quotients down, C++ towards zero.
int64_t floor_divide(int64_t left, int64_t right) {
  if (right == 0) throw Failure("A number is divided by zero.");
  if (left == std::numeric_limits<int64_t>::min() && right == -1) fail_overflow();
  const int64_t quotient = left / right;
  return quotient - ((left % right != 0 && (left < 0) != (right < 0)) ? 1 : 0);
}

Value of_integers(BinaryOp op, int64_t left, int64_t right) {
  int64_t result = 0;
  switch (op) {
    case BinaryOp::add:
      if (__builtin_add_overflow(left, right, &result)) fail_overflow();
      return result;
    case BinaryOp::subtract:
      if (__builtin_sub_overflow(left, right, &result)) fail_overflow();
      return result;
    case BinaryOp::multiply:
      if (__builtin_mul_overflow(left, right, &result)) fail_overflow();
      return result;
    case BinaryOp::divide:
      if (right == 0) throw Failure("A number is divided by zero.");
      return static_cast<double>(left) / static_cast<double>(right);
    case BinaryOp::floor_divide: return floor_divide(left, right);
    case BinaryOp::modulo: return right == -1 ? 0 : left - floor_divide(left, right) * right;
    case BinaryOp::power: return power(left, right);
  }
  return {};
}

Value of_floats(BinaryOp op, double left, double right) {
  if (right == 0 && (op == BinaryOp::divide || op == BinaryOp::floor_divide || op == BinaryOp::modulo)) {
    throw Failure("A number is divided by zero.");
  }
  switch (op) {
    case BinaryOp::add: return left + right;
    case BinaryOp::subtract: return left - right;
    case BinaryOp::multiply: return left * right;
    case BinaryOp::divide: return left / right;
    case BinaryOp::floor_divide: return std::floor(left / right);
    case BinaryOp::modulo: {
      const double rest = std::fmod(left, right);
      return rest != 0 && (rest < 0) != (right < 0) ? rest + right : rest;
    }
    case BinaryOp::power: return std::pow(left, right);
  }
  return {};
}

Value repeat(Context& context, const Value& value, int64_t times) {
  const auto count = static_cast<size_t>(std::max<int64_t>(times, 0));
  if (const Text* text = value.text()) {
    if (text->empty()) return value;
    TextBuilder builder(context);
    for (size_t i = 0; i < count; ++i) builder.add(*text);
    return builder.take();
  }
  const List& list = *value.list();
  List result{{}, list.is_tuple};
  for (size_t i = 0; i < count && !list.items.empty(); ++i) {
    context.step(list.items.size());
    result.items.insert(result.items.end(), list.items.begin(), list.items.end());
  }
  return context.make(std::move(result));
}

bool is_sequence(const Value& value) {
  return value.text() != nullptr || value.list() != nullptr;
}

std::optional<Value> of_sequences(Context& context, BinaryOp op, const Value& left, const Value& right) {
  if (op == BinaryOp::add && left.text() != nullptr && right.text() != nullptr) {
    TextBuilder builder(context);
    builder.add(*left.text());
    builder.add(*right.text());
    return builder.take();
  }
  if (op == BinaryOp::add && left.list() != nullptr && right.list() != nullptr &&
      left.list()->is_tuple == right.list()->is_tuple) {
    context.step(left.list()->items.size() + right.list()->items.size());
    List sum = *left.list();
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
  require_defined(right);
  const auto a = left.as_integer();
  const auto b = right.as_integer();
  if (a && b) return of_integers(op, *a, *b);
  if (left.as_number() && right.as_number()) return of_floats(op, *left.as_number(), *right.as_number());
  if (auto result = of_sequences(context, op, left, right)) return *std::move(result);
  throw Failure("'" + std::string(spelling(op)) + "' has no meaning between " + std::string(left.kind()) + " and " +
                std::string(right.kind()) + ".");
}

Value negate(const Value& value) {
  require_defined(value);
  if (const auto number = value.as_integer()) return of_integers(BinaryOp::subtract, 0, *number);
  if (const double* number = value.floating()) return -*number;
  throw Failure("'-' has no meaning in front of " + std::string(value.kind()) + ".");
}

}  // namespace canopy::jinja
