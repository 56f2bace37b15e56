#include "engine/text/jinja/value.h"

#include <utf8proc.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <limits>

#include "engine/base/text.h"
#include "engine/text/jinja/builtins.h"

namespace canopy::jinja {
namespace {

constexpr size_t max_limbs = 447;  // 4300 digits and a few

[[noreturn]] void fail_size() {
  throw Failure("A whole number has more than " + std::to_string(BigInteger::max_digits) +
                " digits, which is the limit.");
}

}  // namespace

BigInteger::BigInteger(bool negative, Limbs limbs) : negative_(negative), limbs_(std::move(limbs)) {
  while (!limbs_.empty() && limbs_.back() == 0) limbs_.pop_back();
  if (limbs_.empty()) negative_ = false;
  if (limbs_.size() > max_limbs) fail_size();
}

BigInteger::BigInteger(int64_t value) : negative_(value < 0) {
  uint64_t size = value < 0 ? uint64_t{0} - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
  for (; size > 0; size >>= 32) limbs_.push_back(static_cast<uint32_t>(size));
}

BigInteger BigInteger::truncated(double value) {
  int exponent = 0;
  const double fraction = std::frexp(std::abs(value), &exponent);
  const auto mantissa = static_cast<int64_t>(std::ldexp(fraction, 53));
  const BigInteger whole(mantissa);
  if (exponent <= 53) return BigInteger(value < 0, BigInteger(exponent <= 0 ? 0 : mantissa >> (53 - exponent)).limbs_);
  return BigInteger(value < 0, shifted(whole.limbs_, static_cast<size_t>(exponent - 53)));
}

std::optional<BigInteger> BigInteger::parse(std::string_view digits, int base) {
  Limbs limbs;
  if (digits.empty()) return std::nullopt;
  for (const char c : digits) {
    const int digit = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'a' && c <= 'z' ? c - 'a' + 10
                      : c >= 'A' && c <= 'Z' ? c - 'A' + 10
                                             : 36;
    if (digit >= base) return std::nullopt;
    uint64_t carry = static_cast<uint64_t>(digit);
    for (uint32_t& limb : limbs) {
      carry += uint64_t{limb} * static_cast<uint64_t>(base);
      limb = static_cast<uint32_t>(carry);
      carry >>= 32;
    }
    if (carry > 0) limbs.push_back(static_cast<uint32_t>(carry));
    if (limbs.size() > max_limbs) fail_size();
  }
  return BigInteger(false, std::move(limbs));
}

std::optional<int64_t> BigInteger::small() const {
  if (limbs_.size() > 2) return std::nullopt;
  uint64_t size = 0;
  for (size_t i = limbs_.size(); i > 0; --i) size = size << 32 | limbs_[i - 1];
  const uint64_t limit = uint64_t{1} << 63;
  if (size > limit || (size == limit && !negative_)) return std::nullopt;
  return static_cast<int64_t>(negative_ ? uint64_t{0} - size : size);
}

size_t BigInteger::bits() const {
  return limbs_.empty() ? 0 : limbs_.size() * 32 - static_cast<size_t>(std::countl_zero(limbs_.back()));
}

size_t BigInteger::bits_set() const {
  size_t count = 0;
  for (const uint32_t limb : limbs_) count += static_cast<size_t>(std::popcount(limb));
  return count;
}

std::string BigInteger::digits(int base) const {
  if (limbs_.empty()) return "0";
  uint32_t chunk = static_cast<uint32_t>(base);
  size_t chunk_digits = 1;
  for (; uint64_t{chunk} * static_cast<uint64_t>(base) <= std::numeric_limits<uint32_t>::max(); ++chunk_digits) {
    chunk *= static_cast<uint32_t>(base);
  }
  std::string text;  // backwards
  Limbs rest = limbs_;
  while (!rest.empty()) {
    uint32_t part = divide_by(rest, chunk);
    for (size_t i = 0; i < chunk_digits && (part > 0 || !rest.empty()); ++i) {
      text += "0123456789abcdefghijklmnopqrstuvwxyz"[part % static_cast<uint32_t>(base)];
      part /= static_cast<uint32_t>(base);
    }
  }
  if (text.size() > max_digits && base == 10) fail_size();
  std::reverse(text.begin(), text.end());
  return text;
}

BigInteger BigInteger::operator-() const {
  return BigInteger(!negative_, limbs_);
}

std::strong_ordering BigInteger::compare(const Limbs& a, const Limbs& b) {
  if (a.size() != b.size()) return a.size() <=> b.size();
  return std::lexicographical_compare_three_way(a.rbegin(), a.rend(), b.rbegin(), b.rend());
}

std::strong_ordering BigInteger::operator<=>(const BigInteger& other) const {
  if (negative_ != other.negative_) return other.negative_ <=> negative_;
  return negative_ ? compare(other.limbs_, limbs_) : compare(limbs_, other.limbs_);
}

BigInteger::Limbs BigInteger::sum(const Limbs& a, const Limbs& b) {
  Limbs result;
  uint64_t carry = 0;
  for (size_t i = 0; i < std::max(a.size(), b.size()) || carry > 0; ++i) {
    carry += (i < a.size() ? a[i] : 0ull) + (i < b.size() ? b[i] : 0ull);
    result.push_back(static_cast<uint32_t>(carry));
    carry >>= 32;
  }
  return result;
}

BigInteger::Limbs BigInteger::difference(const Limbs& a, const Limbs& b) {
  Limbs result(a.size());
  int64_t borrow = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    borrow += int64_t{a[i]} - (i < b.size() ? int64_t{b[i]} : 0);
    result[i] = static_cast<uint32_t>(borrow);
    borrow >>= 32;
  }
  while (!result.empty() && result.back() == 0) result.pop_back();
  return result;
}

BigInteger operator+(const BigInteger& a, const BigInteger& b) {
  if (a.negative_ == b.negative_) return BigInteger(a.negative_, BigInteger::sum(a.limbs_, b.limbs_));
  if (BigInteger::compare(a.limbs_, b.limbs_) < 0) {
    return BigInteger(b.negative_, BigInteger::difference(b.limbs_, a.limbs_));
  }
  return BigInteger(a.negative_, BigInteger::difference(a.limbs_, b.limbs_));
}

BigInteger operator*(const BigInteger& a, const BigInteger& b) {
  if (a.limbs_.size() + b.limbs_.size() > max_limbs + 1) fail_size();
  BigInteger::Limbs product(a.limbs_.size() + b.limbs_.size());
  for (size_t i = 0; i < a.limbs_.size(); ++i) {
    uint64_t carry = 0;
    for (size_t j = 0; j < b.limbs_.size(); ++j) {
      carry += uint64_t{a.limbs_[i]} * b.limbs_[j] + product[i + j];
      product[i + j] = static_cast<uint32_t>(carry);
      carry >>= 32;
    }
    product[i + b.limbs_.size()] = static_cast<uint32_t>(carry);
  }
  return BigInteger(a.negative_ != b.negative_, std::move(product));
}

BigInteger::Limbs BigInteger::shifted(const Limbs& limbs, size_t bits) {
  Limbs result(bits / 32, 0);
  uint64_t carry = 0;
  for (const uint32_t limb : limbs) {
    carry |= uint64_t{limb} << (bits % 32);
    result.push_back(static_cast<uint32_t>(carry));
    carry >>= 32;
  }
  if (carry > 0) result.push_back(static_cast<uint32_t>(carry));
  return result;
}

uint32_t BigInteger::divide_by(Limbs& limbs, uint32_t divisor) {
  uint64_t rest = 0;
  for (size_t i = limbs.size(); i > 0; --i) {
    rest = rest << 32 | limbs[i - 1];
    limbs[i - 1] = static_cast<uint32_t>(rest / divisor);
    rest %= divisor;
  }
  while (!limbs.empty() && limbs.back() == 0) limbs.pop_back();
  return static_cast<uint32_t>(rest);
}

// Long division, a limb of the quotient at a time (Knuth, The Art of Computer Programming 2, 4.3.1, algorithm D).
std::pair<BigInteger::Limbs, BigInteger::Limbs> BigInteger::divided(const Limbs& a, const Limbs& b) {
  if (compare(a, b) < 0) return {{}, a};
  Limbs quotient = a;
  if (b.size() == 1) {
    const uint32_t rest = divide_by(quotient, b.front());
    return {quotient, rest == 0 ? Limbs{} : Limbs{rest}};
  }
  const auto shift = static_cast<size_t>(std::countl_zero(b.back()));
  const Limbs divisor = shifted(b, shift);
  Limbs rest = shifted(a, shift);
  rest.resize(std::max(rest.size(), a.size() + 1), 0);
  const size_t n = divisor.size();
  quotient.assign(rest.size() - n, 0);
  constexpr uint64_t radix = uint64_t{1} << 32;
  for (size_t at = quotient.size(); at-- > 0;) {
    const uint64_t leading = uint64_t{rest[at + n]} << 32 | rest[at + n - 1];
    uint64_t guess = leading / divisor[n - 1];
    uint64_t left = leading % divisor[n - 1];
    while (guess >= radix || guess * divisor[n - 2] > (left << 32 | rest[at + n - 2])) {
      --guess;
      left += divisor[n - 1];
      if (left >= radix) break;
    }
    int64_t borrow = 0;
    uint64_t carry = 0;
    for (size_t i = 0; i < n; ++i) {
      carry += guess * divisor[i];
      borrow += int64_t{rest[at + i]} - static_cast<int64_t>(carry & (radix - 1));
      rest[at + i] = static_cast<uint32_t>(borrow);
      borrow >>= 32;
      carry >>= 32;
    }
    borrow += int64_t{rest[at + n]} - static_cast<int64_t>(carry);
    rest[at + n] = static_cast<uint32_t>(borrow);
    if (borrow < 0) {  // the guess was one too large
      --guess;
      carry = 0;
      for (size_t i = 0; i < n; ++i) {
        carry += uint64_t{rest[at + i]} + divisor[i];
        rest[at + i] = static_cast<uint32_t>(carry);
        carry >>= 32;
      }
      rest[at + n] += static_cast<uint32_t>(carry);
    }
    quotient[at] = static_cast<uint32_t>(guess);
  }
  for (size_t i = 0; i < n; ++i) {
    rest[i] = static_cast<uint32_t>(((i + 1 < n ? uint64_t{rest[i + 1]} << 32 : 0) | rest[i]) >> shift);
  }
  rest.resize(n);
  while (!rest.empty() && rest.back() == 0) rest.pop_back();
  while (!quotient.empty() && quotient.back() == 0) quotient.pop_back();
  return {std::move(quotient), std::move(rest)};
}

std::pair<BigInteger, BigInteger> BigInteger::divide(const BigInteger& a, const BigInteger& b) {
  auto [quotient, rest] = divided(a.limbs_, b.limbs_);
  BigInteger whole(a.negative_ != b.negative_, std::move(quotient));
  BigInteger left(a.negative_, std::move(rest));
  if (!left.zero() && a.negative_ != b.negative_) {
    whole = whole - 1;
    left = left + b;
  }
  return {std::move(whole), std::move(left)};
}

double BigInteger::ratio(const BigInteger& a, const BigInteger& b) {
  if (a.zero()) return 0.0;
  // A quotient of 64 bits or more, whose last bit says whether anything is left: converting it rounds once.
  constexpr int64_t wanted = 66;
  const auto bits = static_cast<int64_t>(a.bits()) - static_cast<int64_t>(b.bits());
  const int64_t scale = wanted - bits;
  auto [quotient, rest] = divided(scale > 0 ? shifted(a.limbs_, static_cast<size_t>(scale)) : a.limbs_,
                                  scale < 0 ? shifted(b.limbs_, static_cast<size_t>(-scale)) : b.limbs_);
  if (!rest.empty()) quotient.front() |= 1;
  // 66 or 67 bits; below the smallest normal number fewer are kept, so they are cut before the conversion.
  const size_t have = BigInteger(false, quotient).bits();
  const int64_t exponent = static_cast<int64_t>(have) - scale;
  const int64_t kept = std::clamp<int64_t>(exponent + 1074, 0, 53);
  const size_t dropped = have - static_cast<size_t>(kept);
  Limbs divisor = shifted({1}, dropped);
  auto [mantissa, tail] = divided(quotient, divisor);
  const Limbs half = shifted({1}, dropped - 1);
  const auto order = compare(tail, half);
  uint64_t value =
      BigInteger(false, mantissa).limbs_.empty() ? 0 : static_cast<uint64_t>(*BigInteger(false, mantissa).small());
  if (order > 0 || (order == 0 && value % 2 == 1)) ++value;
  const double size = std::ldexp(static_cast<double>(value), static_cast<int>(static_cast<int64_t>(dropped) - scale));
  return a.negative_ != b.negative_ ? -size : size;
}

std::optional<double> parse_float(std::string_view text) {
  double number = 0;
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, number);
  if (text.empty() || result.ptr != end || text.ends_with(')')) return std::nullopt;  // "nan(...)" is C's
  if (result.ec == std::errc()) return number;
  if (result.ec != std::errc::result_out_of_range) return std::nullopt;
  const size_t e = text.find_first_of("eE");
  const size_t first = text.find_first_of("123456789");
  const bool tiny = e != std::string_view::npos ? text[e + 1] == '-' : text.find('.') < first;
  const double size = tiny ? 0.0 : std::numeric_limits<double>::infinity();
  return text.starts_with('-') ? -size : size;
}

Text::Text(std::string bytes, Origin origin)
    : bytes_(std::move(bytes)), origins_(bytes_.size(), static_cast<char>(origin)) {}

void Text::append(const Text& other) {
  bytes_ += other.bytes_;
  origins_ += other.origins_;
}

void Text::append(const Text& other, size_t begin, size_t size) {
  bytes_.append(other.bytes_, begin, size);
  origins_.append(other.origins_, begin, size);
}

void Text::append(std::string_view bytes, Origin origin) {
  bytes_ += bytes;
  origins_.append(bytes.size(), static_cast<char>(origin));
}

Text Text::part(size_t begin, size_t size) const {
  Text part;
  if (begin < bytes_.size()) part.append(*this, begin, size);
  return part;
}

size_t Text::run_length(size_t at) const {
  const size_t end = origins_.find_first_not_of(origins_[at], at);
  return (end == std::string::npos ? origins_.size() : end) - at;
}

CodePoint code_point_at(std::string_view text, size_t at) {
  const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  utf8proc_int32_t value = 0;
  const auto left = static_cast<utf8proc_ssize_t>(std::min<size_t>(text.size() - at, 4));
  const utf8proc_ssize_t size = utf8proc_iterate(bytes + at, left, &value);
  if (size < 1) return {static_cast<unsigned char>(text[at]), 1, false};
  return {value, static_cast<size_t>(size), true};
}

std::vector<size_t> character_starts(std::string_view text) {
  std::vector<size_t> starts;
  starts.reserve(text.size() + 1);
  for (size_t at = 0; at < text.size(); at += code_point_at(text, at).size) starts.push_back(at);
  starts.push_back(text.size());
  return starts;
}

size_t count_characters(std::string_view text) {
  size_t count = 0;
  for (size_t at = 0; at < text.size(); at += code_point_at(text, at).size) ++count;
  return count;
}

std::string encode_utf8(int32_t code_point) {
  std::array<utf8proc_uint8_t, 4> bytes{};
  const utf8proc_ssize_t size = utf8proc_encode_char(code_point, bytes.data());
  return {reinterpret_cast<const char*>(bytes.data()), static_cast<size_t>(std::max<utf8proc_ssize_t>(size, 0))};
}

bool is_space(int32_t code_point) {
  if (code_point < 0x80) {
    return code_point == ' ' || (code_point >= '\t' && code_point <= '\r') ||
           (code_point >= 0x1C && code_point <= 0x1F);
  }
  if (code_point == 0x85) return true;
  const utf8proc_category_t category = utf8proc_category(code_point);
  return category == UTF8PROC_CATEGORY_ZS || category == UTF8PROC_CATEGORY_ZL || category == UTF8PROC_CATEGORY_ZP;
}

bool is_letter(int32_t code_point) {
  const utf8proc_category_t category = utf8proc_category(code_point);
  return category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO;
}

bool is_decimal_digit(int32_t code_point) {
  return utf8proc_category(code_point) == UTF8PROC_CATEGORY_ND;
}

bool is_digit(int32_t code_point) {
  constexpr std::array<std::pair<int32_t, int32_t>, 13> others = {{{0xB2, 0xB3},
                                                                   {0xB9, 0xB9},
                                                                   {0x1369, 0x1371},
                                                                   {0x19DA, 0x19DA},
                                                                   {0x2070, 0x2070},
                                                                   {0x2074, 0x2079},
                                                                   {0x2080, 0x2089},
                                                                   {0x2460, 0x2468},
                                                                   {0x2474, 0x247C},
                                                                   {0x2488, 0x2490},
                                                                   {0x24EA, 0x24EA},
                                                                   {0x24F5, 0x24FD},
                                                                   {0x2776, 0x2792}}};
  return is_decimal_digit(code_point) || std::any_of(others.begin(), others.end(), [&](const auto& range) {
           return code_point >= range.first && code_point <= range.second;
         });
}

bool is_numeric(int32_t code_point) {
  const utf8proc_category_t category = utf8proc_category(code_point);
  return category == UTF8PROC_CATEGORY_ND || category == UTF8PROC_CATEGORY_NL || category == UTF8PROC_CATEGORY_NO;
}

bool is_printable(int32_t code_point) {
  if (code_point == ' ') return true;
  const utf8proc_category_t category = utf8proc_category(code_point);
  return category != UTF8PROC_CATEGORY_CN && (category < UTF8PROC_CATEGORY_ZS || category > UTF8PROC_CATEGORY_CO);
}

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

Context::~Context() {
  for (const auto& space : namespaces_) space->clear();
}

void Context::step(size_t count) {
  if (count > limits_.steps - steps_) {
    throw Failure("The template takes more than " + std::to_string(limits_.steps) + " steps, which is the limit.");
  }
  steps_ += count;
}

void Context::use_text(size_t bytes) {
  if (bytes > limits_.text_bytes - text_) {
    throw Failure("The template makes or searches more than " + std::to_string(limits_.text_bytes) +
                  " bytes of text, which is the limit.");
  }
  text_ += bytes;
}

void Context::check_depth(size_t depth) const {
  if (depth > limits_.call_depth) {
    throw Failure("Lists, dicts or generators are nested deeper than " + std::to_string(limits_.call_depth) +
                  " levels, which is the limit.");
  }
}

Value Context::make(List list) {
  step(list.items.size());
  Value value(std::move(list));
  check_depth(value.depth());
  return value;
}

Value Context::make(Dict dict) {
  step(dict.items.size());
  Value value(std::move(dict));
  check_depth(value.depth());
  return value;
}

Context::Call::Call(Context& context) : context_(context) {
  if (context.calls_ >= context.limits_.call_depth) {
    throw Failure("Macros, recursive loops or generators call each other deeper than " +
                  std::to_string(context.limits_.call_depth) + " levels, which is the limit.");
  }
  ++context.calls_;
}

void TextBuilder::add(const Text& text) {
  context_.use_text(text.size() + cost_of_piece);
  text_.append(text);
}

void TextBuilder::add(const Text& text, size_t begin, size_t size) {
  if (begin >= text.size()) return;
  context_.use_text(std::min(size, text.size() - begin) + cost_of_piece);
  text_.append(text, begin, size);
}

void TextBuilder::add(std::string_view bytes, Origin origin) {
  context_.use_text(bytes.size() + cost_of_piece);
  text_.append(bytes, origin);
}

namespace {

std::string listed(const std::vector<std::string_view>& names) {
  if (names.empty()) return "it takes none";
  std::string text = "allowed are ";
  for (size_t i = 0; i < names.size(); ++i) text += (i == 0 ? "" : ", ") + std::string(names[i]);
  return text;
}

}  // namespace

Parameters::Parameters(std::string_view callee, const Arguments& arguments,
                       std::initializer_list<std::string_view> names, size_t required)
    : callee_(callee), names_(names), values_(names.size(), nullptr) {
  if (arguments.positional.size() > names_.size()) {
    throw Failure("'" + std::string(callee) + "' is given " + std::to_string(arguments.positional.size()) +
                  " arguments; " + listed(names_) + ".");
  }
  for (size_t i = 0; i < arguments.positional.size(); ++i) values_[i] = &arguments.positional[i];
  for (const auto& [name, value, key] : arguments.named) {
    const auto found = std::find(names_.begin(), names_.end(), name);
    if (found == names_.end()) {
      throw Failure("'" + std::string(callee) + "' takes no argument " + quoted_name(name) + "; " + listed(names_) +
                    ".");
    }
    values_[static_cast<size_t>(found - names_.begin())] = &value;
  }
  for (size_t i = 0; i < required; ++i) {
    if (values_[i] == nullptr) {
      throw Failure("'" + std::string(callee) + "' needs its argument '" + std::string(names_[i]) + "'.");
    }
  }
}

const Text& Parameters::text(size_t index) const {
  if (const Text* text = at(index).text()) return *text;
  throw Failure("The argument '" + std::string(names_[index]) + "' of '" + std::string(callee_) + "' is " +
                std::string(at(index).kind()) + "; it must be a string.");
}

const Text* Parameters::text_or_null(size_t index) const {
  return find(index) == nullptr || at(index).is_none() ? nullptr : &text(index);
}

int64_t Parameters::integer(size_t index, int64_t otherwise) const {
  if (values_[index] == nullptr) return otherwise;
  if (const auto value = at(index).as_integer()) return *value;
  throw Failure("The argument '" + std::string(names_[index]) + "' of '" + std::string(callee_) + "' is " +
                std::string(at(index).kind()) + "; it must be an int.");
}

bool Parameters::truth(size_t index, bool otherwise) const {
  return values_[index] == nullptr ? otherwise : at(index).truthy();
}

}  // namespace canopy::jinja
