#pragma once
// A bounded reader of little-endian numbers, used for all file bytes; every error names the offset and the field.

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "engine/base/error.h"

namespace canopy {

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

}  // namespace canopy
