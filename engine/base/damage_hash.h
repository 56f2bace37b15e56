#pragma once
// A hash for detecting damaged files.

#include <cstddef>
#include <cstdint>
#include <span>

namespace canopy {

/// 64-bit FNV-1a: detects accidental damage, but not deliberate changes.
constexpr uint64_t damage_hash(std::span<const std::byte> data) {
  uint64_t hash = 0xCBF29CE484222325;
  for (const std::byte b : data) hash = (hash ^ static_cast<uint64_t>(b)) * 0x100000001B3;
  return hash;
}

}  // namespace canopy
