#pragma once
// Bytes: numbers written and read within bounds (little-endian, LEB128), hashes (FNV-1a, SHA-1, SHA-256), and Base64.

#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "engine/base/error.h"

namespace canopy {

// A bounded reader of little-endian numbers, used for all file bytes; every error names the offset and the field.
class Reader {
 public:
  /// Reads `bytes` from the front; `base` is what offset() says of the first of them (a place in an enclosing file).
  explicit Reader(std::span<const std::byte> bytes, uint64_t base = 0) : bytes_(bytes), base_(base) {}

  uint64_t offset() const { return base_ + position_; }
  uint64_t remaining() const { return bytes_.size() - position_; }

  /// The next little-endian number. bool is not readable: a file's byte may be neither 0 nor 1.
  template <class T>
  requires(std::is_arithmetic_v<T> && !std::is_same_v<T, bool>) T read(std::string_view field) {
    std::array<std::byte, sizeof(T)> raw;
    std::memcpy(raw.data(), bytes(sizeof(T), field).data(), sizeof(T));
    if constexpr (std::endian::native == std::endian::big) {
      for (size_t i = 0; i < sizeof(T) / 2; ++i) std::swap(raw[i], raw[sizeof(T) - 1 - i]);
    }
    return std::bit_cast<T>(raw);
  }

  /// The next `count` bytes, in place.
  std::span<const std::byte> bytes(uint64_t count, std::string_view field) {
    if (count > remaining()) fail_short(count, field);
    const auto result = bytes_.subspan(position_, count);
    position_ += count;
    return result;
  }

  /// The next `count` bytes as text, in place; they may be any bytes.
  std::string_view text(uint64_t count, std::string_view field) {
    const auto raw = bytes(count, field);
    return {reinterpret_cast<const char*>(raw.data()), raw.size()};
  }

 private:
  [[noreturn]] void fail_short(uint64_t count, std::string_view field) const {
    throw bad_input("The file ends inside " + std::string(field) + " at offset " + std::to_string(offset()) + ": " +
                    std::to_string(count) + " bytes are needed, " + std::to_string(remaining()) + " are left.");
  }

  std::span<const std::byte> bytes_;
  uint64_t base_ = 0;
  size_t position_ = 0;
};

// Numbers and texts as bytes of a record: little-endian, and whole numbers in as few bytes as they need.

/// Appends to a string that it does not own.
class ByteWriter {
 public:
  explicit ByteWriter(std::string& bytes) : bytes_(bytes) {}

  void byte(uint8_t value) { bytes_.push_back(static_cast<char>(value)); }

  template <std::unsigned_integral T>
  void fixed(T value) {
    for (size_t i = 0; i < sizeof(T); ++i) byte(static_cast<uint8_t>(value >> (8 * i)));
  }
  void number(double value) { fixed(std::bit_cast<uint64_t>(value)); }
  void number(float value) { fixed(std::bit_cast<uint32_t>(value)); }

  /// LEB128: seven bits a byte, the lowest first; the top bit says that more follow.
  void whole(uint64_t value) {
    for (; value >= 0x80; value >>= 7) byte(static_cast<uint8_t>(value | 0x80));
    byte(static_cast<uint8_t>(value));
  }
  /// Its length as whole(), then its bytes.
  void text(std::string_view value) {
    whole(value.size());
    bytes_ += value;
  }

 private:
  std::string& bytes_;
};

/// A number of ByteWriter::whole() as a T. Throws bad_input naming the field ("the width") when it does not fit.
template <std::unsigned_integral T = uint32_t>
T read_whole(Reader& reader, std::string_view field) {
  uint64_t value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    const uint64_t byte = reader.read<uint8_t>(field);
    const uint64_t bits = byte & 0x7f;
    if (shift == 63 && bits > 1) break;
    value |= bits << shift;
    if (byte >= 0x80) continue;
    if (std::in_range<T>(value)) return static_cast<T>(value);
    throw bad_input("A value is out of range: " + std::string(field) + " is " + std::to_string(value) + "; at most " +
                    std::to_string(std::numeric_limits<T>::max()) + " is allowed.");
  }
  throw bad_input("A value is out of range: " + std::string(field) + " is longer than any number of 64 bits.");
}

/// Reads the number of elements that follow, each of at least `smallest` bytes. Throws bad_input when more are
/// announced than the remaining bytes can hold, so that no memory is allocated for a wrong count.
inline uint32_t read_count(Reader& reader, uint64_t smallest, std::string_view field) {
  const auto count = read_whole<uint32_t>(reader, field);
  if (count > reader.remaining() / smallest) {
    throw bad_input("A value is out of range: " + std::string(field) + " is " + std::to_string(count) + "; only " +
                    std::to_string(reader.remaining()) + " bytes follow it.");
  }
  return count;
}

inline std::string_view read_text(Reader& reader, std::string_view field) {
  return reader.text(read_whole<uint64_t>(reader, field), field);
}

// Hashes.

/// 64-bit FNV-1a: detects accidental damage, but not deliberate changes.
constexpr uint64_t damage_hash(std::span<const std::byte> data) {
  uint64_t hash = 0xCBF29CE484222325;
  for (const std::byte b : data) hash = (hash ^ static_cast<uint64_t>(b)) * 0x100000001B3;
  return hash;
}

/// The same of a text, as 16 hexadecimal digits.
inline std::string damage_hash_text(std::string_view text) {
  std::array<char, 17> digits{};
  const uint64_t hash = damage_hash(std::as_bytes(std::span(text.data(), text.size())));
  std::snprintf(digits.data(), digits.size(), "%016llx", static_cast<unsigned long long>(hash));
  return digits.data();
}

/// The bytes that a hash over blocks of 64 bytes has taken so far, as SHA-1 and SHA-256 are.
template <size_t Words>
struct HashedBlocks {
  std::array<uint32_t, Words> state;
  std::array<uint8_t, 64> block{};  // begun
  uint64_t bytes = 0;
};

/// SHA-256 (FIPS 180-4) of bytes that come in parts.
class Sha256 {
 public:
  void add(std::span<const std::byte> bytes);
  /// Of all bytes so far; more may be added after it.
  std::array<uint8_t, 32> digest() const;

 private:
  HashedBlocks<8> blocks_{
      {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19}};
};

/// SHA-1 (FIPS 180-4) of bytes that come in parts: how Git names its objects. Against deliberate changes it protects no
/// more.
class Sha1 {
 public:
  void add(std::span<const std::byte> bytes);
  std::array<uint8_t, 20> digest() const;

 private:
  HashedBlocks<5> blocks_{{0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0}};
};

std::array<uint8_t, 32> sha256(std::string_view bytes);

/// Bytes as hexadecimal digits in small letters.
std::string hex_digits(std::span<const uint8_t> bytes);

// Bytes as text: Base64 (RFC 4648, section 4).

std::string encode_base64(std::span<const uint8_t> bytes);

/// The bytes that a text stands for; nothing for a text that is no Base64.
std::optional<std::string> decode_base64(std::string_view text);

}  // namespace canopy
