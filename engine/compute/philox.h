#pragma once
// Philox4x32-10, the counter-based generator of Salmon, Moraes, Dror and Shaw, "Parallel Random Numbers: As Easy as
// 1, 2, 3" (SC'11). No state: the same counter and key always give the same four words.

#include <array>
#include <cstdint>

#include "engine/compute/shared_code.h"

namespace canopy {

using PhiloxCounter = std::array<uint32_t, 4>;
using PhiloxKey = std::array<uint32_t, 2>;

/// Turns a counter into its random words, in place; the key is used up.
CANOPY_SHARED void philox4x32_words(uint32_t (&c)[4], uint32_t (&k)[2]) {
  constexpr uint32_t multiplier0 = 0xD2511F53u;
  constexpr uint32_t multiplier1 = 0xCD9E8D57u;
  constexpr uint32_t weyl0 = 0x9E3779B9u;  // golden ratio
  constexpr uint32_t weyl1 = 0xBB67AE85u;  // sqrt(3) - 1
  constexpr int rounds = 10;
  for (int round = 0; round < rounds; ++round) {
    const uint64_t p0 = uint64_t{multiplier0} * c[0];
    const uint64_t p1 = uint64_t{multiplier1} * c[2];
    c[0] = static_cast<uint32_t>(p1 >> 32) ^ c[1] ^ k[0];
    c[1] = static_cast<uint32_t>(p1);
    c[2] = static_cast<uint32_t>(p0 >> 32) ^ c[3] ^ k[1];
    c[3] = static_cast<uint32_t>(p0);
    k[0] += weyl0;
    k[1] += weyl1;
  }
}

inline PhiloxCounter philox4x32(PhiloxCounter c, PhiloxKey k) {
  uint32_t words[4] = {c[0], c[1], c[2], c[3]}, key[2] = {k[0], k[1]};
  philox4x32_words(words, key);
  return {words[0], words[1], words[2], words[3]};
}

}  // namespace canopy
