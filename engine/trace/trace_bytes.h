#pragma once
// Numbers and texts as bytes of a record: little-endian, and whole numbers in as few bytes as they need.

#include <bit>
#include <concepts>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/reader.h"

namespace canopy {

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

}  // namespace canopy
