#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

namespace canopy {

/// A recording serves all contexts up to a power of two, so that a growing text is recorded anew a few times only.
inline uint32_t rounded_positions(uint32_t positions, uint32_t context) {
  constexpr uint32_t smallest = 256;
  return std::min(std::max(smallest, std::bit_ceil(positions)), context);
}

}  // namespace canopy
