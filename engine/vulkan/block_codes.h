#pragma once
// Takes a quantized block of a GGUF file apart: a code per element and the bits of its scales, in the order of the
// elements. The layouts are ggml's; each reader describes its own.

#include <array>
#include <cstddef>
#include <cstdint>

#include "engine/compute/types.h"

namespace canopy::vk {

struct BlockCodes {
  /// As stored, before offsets: 0 ... 3 (Q2_K), 7 (Q3_K), 15, 31 (Q5_*) or 63 (Q6_K).
  std::array<uint8_t, 256> codes;
  /// Per 32 elements, the bits shaders/words.glsl expects: for Q5_0 and Q5_1 two halves (scale, minimum), else 16 bits.
  std::array<uint32_t, 8> scales;
  /// Two halves that multiply all scales (the lower) and minima (the upper), where the type has them.
  uint32_t factor;
};

/// Reads one file block: block_size(type) says how many elements and bytes. Only for the types of word_layout.h.
void read_block(WeightType type, const std::byte* from, BlockCodes& out);

}  // namespace canopy::vk
