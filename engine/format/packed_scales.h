#pragma once
// The eight scales and eight minimums of a Q4_K or Q5_K block: six bits each, 96 bits in 12 bytes.
//
//   byte      bits 0-5            bits 6-7
//   i < 4     scale i             high two bits of scale i + 4
//   4 + i     minimum i           high two bits of minimum i + 4
//             bits 0-3            bits 4-7
//   8 + i     low bits of scale i + 4   low bits of minimum i + 4

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace canopy {

struct ScalesAndMinimums {
  std::array<uint8_t, 8> scales = {};    // 0 to 63
  std::array<uint8_t, 8> minimums = {};  // 0 to 63
};

constexpr ScalesAndMinimums unpack_scales(std::span<const uint8_t, 12> bytes) {
  ScalesAndMinimums result;
  for (size_t i = 0; i < 4; ++i) {
    result.scales[i] = bytes[i] & 0x3f;
    result.minimums[i] = bytes[4 + i] & 0x3f;
    result.scales[i + 4] = static_cast<uint8_t>((bytes[8 + i] & 0xf) | (bytes[i] >> 6 << 4));
    result.minimums[i + 4] = static_cast<uint8_t>((bytes[8 + i] >> 4) | (bytes[4 + i] >> 6 << 4));
  }
  return result;
}

/// The inverse; every entry must be below 64.
constexpr std::array<uint8_t, 12> pack_scales(const ScalesAndMinimums& values) {
  std::array<uint8_t, 12> bytes = {};
  for (size_t i = 0; i < 4; ++i) {
    bytes[i] = static_cast<uint8_t>(values.scales[i] | (values.scales[i + 4] >> 4 << 6));
    bytes[4 + i] = static_cast<uint8_t>(values.minimums[i] | (values.minimums[i + 4] >> 4 << 6));
    bytes[8 + i] = static_cast<uint8_t>((values.scales[i + 4] & 0xf) | (values.minimums[i + 4] & 0xf) << 4);
  }
  return bytes;
}

}  // namespace canopy
