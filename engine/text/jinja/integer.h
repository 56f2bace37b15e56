#pragma once
// Whole numbers beyond 64 bits: templates have Python's, which grow as they must.

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace canopy::jinja {

class BigInteger {
 public:
  /// Of larger numbers nothing is computed: Python does not print them either.
  static constexpr size_t max_digits = 4300;

  BigInteger(int64_t value);
  /// The whole part of a finite number.
  static BigInteger truncated(double value);
  /// Digits of a base from 2 to 36 without a sign; nothing where one is no digit of it. Throws Failure beyond
  /// max_digits.
  static std::optional<BigInteger> parse(std::string_view digits, int base);

  bool negative() const { return negative_; }
  bool zero() const { return limbs_.empty(); }
  /// What operations on it cost: each takes time in proportion to the product of two sizes.
  size_t size() const { return limbs_.size(); }
  std::optional<int64_t> small() const;  // nothing where it does not fit
  /// Rounded to the nearest; infinite where it is too large.
  double to_double() const { return ratio(*this, 1); }
  /// Of the number without its sign; letters are small.
  std::string digits(int base = 10) const;
  std::string text() const { return (negative_ ? "-" : "") + digits(); }
  size_t bits() const;
  size_t bits_set() const;

  BigInteger operator-() const;
  std::strong_ordering operator<=>(const BigInteger& other) const;
  bool operator==(const BigInteger& other) const = default;

  /// All throw Failure where the result has more than max_digits.
  friend BigInteger operator+(const BigInteger& a, const BigInteger& b);
  friend BigInteger operator-(const BigInteger& a, const BigInteger& b) { return a + -b; }
  friend BigInteger operator*(const BigInteger& a, const BigInteger& b);
  /// Quotient, rounded down, and rest; the divisor is not zero.
  static std::pair<BigInteger, BigInteger> divide(const BigInteger& a, const BigInteger& b);
  static double ratio(const BigInteger& a, const BigInteger& b);

 private:
  using Limbs = std::vector<uint32_t>;  // the smallest first, the last not zero

  BigInteger(bool negative, Limbs limbs);
  static std::strong_ordering compare(const Limbs& a, const Limbs& b);
  static Limbs sum(const Limbs& a, const Limbs& b);
  static Limbs difference(const Limbs& a, const Limbs& b);  // a >= b
  static std::pair<Limbs, Limbs> divided(const Limbs& a, const Limbs& b);
  static uint32_t divide_by(Limbs& limbs, uint32_t divisor);  // gives the rest
  static Limbs shifted(const Limbs& limbs, size_t bits);

  bool negative_ = false;
  Limbs limbs_;
};

/// A float as Python reads it, without white space around it; too large a one is infinite. Nothing where it is none.
std::optional<double> parse_float(std::string_view text);

}  // namespace canopy::jinja
