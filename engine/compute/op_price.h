#pragma once
// What ops cost by arithmetic; what counts is said at the top of ops.h.

#include <cstdint>

namespace canopy {

/// Lower estimate of the memory traffic and the arithmetic of an op.
struct OpPrice {
  uint64_t bytes = 0;  // read and written
  uint64_t flops = 0;
  bool operator==(const OpPrice&) const = default;
};
inline OpPrice operator+(const OpPrice& a, const OpPrice& b) {
  return {a.bytes + b.bytes, a.flops + b.flops};
}

/// Bytes of `count` floats or other words.
inline uint64_t word_bytes(uint64_t count) {
  return count * 4;
}

}  // namespace canopy
