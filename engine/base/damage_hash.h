#pragma once
// A hash for detecting damaged files.

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>

namespace canopy {

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

}  // namespace canopy
