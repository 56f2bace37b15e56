#include <cmath>

#include "engine/text/jinja/format_text.h"
#include "engine/text/jinja/operations.h"
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

}  // namespace canopy::jinja
