#pragma once
// How tokens are decoded.

#include <cstdint>

namespace canopy {

/// How a reply is written, and what one round of it did: a round itself is never `adaptive`.
enum class DecodeMode : uint8_t {
  ar,        // one token a pass, no draft
  chain,     // one drafted token a depth (DFlash)
  tree,      // a best-first tree (DDTree)
  adaptive,  // whichever promises most, round by round (BASTION)
};

}  // namespace canopy
