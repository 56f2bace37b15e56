#pragma once
// Types whose weights lie in device memory as words (shaders/words.glsl reads them): per block of 32 columns, words of
// codes and words of the codes' upper bits; per group of blocks, 16 bits of scale for each (Q5: a whole word) and, for
// the K-quants and IQ4_XS, one word whose halves are factors of all. Nothing is widened: a row takes at most a tenth
// more than in the file.

#include <cstddef>
#include <cstdint>
#include <functional>

#include "engine/compute/types.h"

namespace canopy::vk {

struct WordFormat {
  uint32_t main_words;    // of a block: 4 bits a code, or 2 (2 words)
  uint32_t high_words;    // 1 bit a code each
  uint32_t group_blocks;  // blocks that share the words behind them
  uint32_t scale_words;   // of a group
  bool has_factor;

  uint32_t group_words() const { return group_blocks * (main_words + high_words) + scale_words + (has_factor ? 1 : 0); }
};

/// The format of a type, or nullptr for those kept otherwise (weight_layout.h).
const WordFormat* word_format(WeightType type);

/// Words of one row of `cols` columns; whole groups.
uint32_t words_per_row(const WordFormat& format, uint32_t cols);

/// Calls set(index, word) for the words of one row of a file; those it does not name are 0.
void pack_words(WeightType type, const std::byte* row, uint32_t cols,
                const std::function<void(uint32_t index, uint32_t word)>& set);

}  // namespace canopy::vk
