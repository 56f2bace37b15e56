#pragma once
// A hash that tells a damaged file from a whole one.

#include <cstddef>
#include <cstdint>
#include <span>

namespace canopy {

/// 64-bit FNV-1a: against damage, not against malice.
constexpr uint64_t damage_hash(std::span<const std::byte> data) {
  uint64_t hash = 0xCBF29CE484222325;
  for (const std::byte b : data) hash = (hash ^ static_cast<uint64_t>(b)) * 0x100000001B3;
  return hash;
}

}  // namespace canopy
