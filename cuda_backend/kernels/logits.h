#pragma once
// Logits as integers in their order, for the kernels that look for the largest ones. A row is cut into blocks of
// tokens; what the blocks leave is merged by the block that comes last for the row.

#include "cuda_backend/kernels/common.h"

namespace canopy::cuda {

/// Larger for larger numbers.
CANOPY_DEVICE uint32_t ordered_bits(uint32_t bits) {
  return (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
}
CANOPY_DEVICE uint32_t unordered_bits(uint32_t key) {
  return (key & 0x80000000u) != 0 ? key & 0x7FFFFFFFu : ~key;
}

/// A key and a token's id as one number: larger for a larger key, of equal ones for the lower id.
CANOPY_DEVICE uint64_t ranked(uint32_t key, uint32_t id) {
  return uint64_t{key} << 32 | (0xFFFFFFFFu - id);
}
CANOPY_DEVICE uint32_t key_of_rank(uint64_t rank) {
  return static_cast<uint32_t>(rank >> 32);
}
CANOPY_DEVICE uint32_t id_of_rank(uint64_t rank) {
  return 0xFFFFFFFFu - static_cast<uint32_t>(rank);
}

}  // namespace canopy::cuda
