#include "engine/vulkan/word_layout.h"

#include "engine/vulkan/block_codes.h"

namespace canopy::vk {

namespace {

constexpr uint32_t kBlockColumns = 32;

// Nibble i of word w is element 4 w + i of the first half of the block, then of the second; or, two bits a code, byte q
// of word h is quad q of half h.
uint32_t main_word(const WordFormat& format, const uint8_t* codes, uint32_t w) {
  uint32_t word = 0;
  if (format.main_words == 4) {
    for (uint32_t i = 0; i < 8; ++i) word |= (codes[4 * w + i % 4 + 16 * (i / 4)] & 15u) << (4 * i);
  } else {
    for (uint32_t i = 0; i < 16; ++i) word |= (codes[16 * w + i] & 3u) << (2 * i);
  }
  return word;
}

// One upper bit a code: bit e is element e. Two: word h has two bits of each element of half h.
uint32_t high_word(const WordFormat& format, const uint8_t* codes, uint32_t w) {
  const uint32_t main_bits = format.main_words == 4 ? 4 : 2;
  uint32_t word = 0;
  if (format.high_words == 1) {
    for (uint32_t e = 0; e < 32; ++e) word |= (uint32_t{codes[e]} >> main_bits & 1) << e;
  } else {
    for (uint32_t i = 0; i < 16; ++i) word |= (uint32_t{codes[16 * w + i]} >> main_bits & 3) << (2 * i);
  }
  return word;
}

}  // namespace

const WordFormat* word_format(WeightType type) {
  static constexpr WordFormat q5{4, 1, 1, 1, false};
  static constexpr WordFormat pairs{4, 0, 2, 1, false};
  static constexpr WordFormat q2_k{2, 0, 8, 4, true}, q3_k{2, 1, 8, 4, true}, four{4, 0, 8, 4, true};
  static constexpr WordFormat q5_k{4, 1, 8, 4, true}, q6_k{4, 2, 8, 4, true};
  switch (type) {
    case WeightType::q5_0:
    case WeightType::q5_1: return &q5;
    case WeightType::q2_k: return &q2_k;
    case WeightType::q3_k: return &q3_k;
    case WeightType::q4_k:
    case WeightType::iq4_xs: return &four;
    case WeightType::q5_k: return &q5_k;
    case WeightType::q6_k: return &q6_k;
    case WeightType::iq4_nl:
    case WeightType::mxfp4: return &pairs;
    case WeightType::f32:
    case WeightType::f16:
    case WeightType::bf16:
    case WeightType::q8_0:
    case WeightType::q4_0:
    case WeightType::q4_1: return nullptr;
  }
  return nullptr;
}

uint32_t words_per_row(const WordFormat& format, uint32_t cols) {
  const uint32_t group = format.group_blocks * kBlockColumns;
  return (cols + group - 1) / group * format.group_words();
}

void pack_words(WeightType type, const std::byte* row, uint32_t cols,
                const std::function<void(uint32_t index, uint32_t word)>& set) {
  const WordFormat& format = *word_format(type);
  const uint32_t per_group = format.group_blocks;
  const uint32_t block_words = format.main_words + format.high_words;
  const BlockSize file = block_size(type);
  BlockCodes block;
  uint32_t scales = 0;  // of the word under way
  for (uint32_t b = 0; b * kBlockColumns < cols; ++b) {
    const uint32_t inside = b * kBlockColumns % file.elements / kBlockColumns;  // of a file block
    if (inside == 0) read_block(type, row + uint64_t{b} * kBlockColumns / file.elements * file.bytes, block);
    const uint8_t* codes = block.codes.data() + inside * kBlockColumns;
    const uint32_t group = b / per_group * format.group_words();
    const uint32_t first = group + b % per_group * block_words;
    for (uint32_t w = 0; w < format.main_words; ++w) set(first + w, main_word(format, codes, w));
    for (uint32_t w = 0; w < format.high_words; ++w) {
      set(first + format.main_words + w, high_word(format, codes, w));
    }
    const uint32_t behind = group + per_group * block_words;
    const uint32_t in_group = b % per_group;
    scales = in_group % 2 == 0 ? block.scales[inside] : scales | block.scales[inside] << 16;
    set(behind + in_group / 2, scales);
    if (format.has_factor) set(behind + format.scale_words, block.factor);
  }
}

}  // namespace canopy::vk
