#pragma once

#include <cstring>
#include <span>

namespace canopy::test {

/// Whether two rows hold the same floats bit by bit: -0 is not 0, and a NaN is equal to itself.
inline bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

}  // namespace canopy::test
