#pragma once
// A GGUF vocabulary as lines of text, which a fuzzer changes more easily than lengths and counts:
//
//   model llama            tokenizer.ggml.model; likewise pre, and the ids bos, eos, unk
//   add_bos 1              likewise add_space_prefix
//   t 1 -2.5 ▁the          a token: type, score, spelling
//   m Ġ t                  a merge
//
// Lines of other forms are left out, and everything behind an empty line is the text to encode.

#include <string_view>

#include "engine/text/vocabulary.h"

namespace canopy::fuzz {

struct VocabularyText {
  VocabularyData data;  // views into the input
  std::string_view text;
};

VocabularyText read_vocabulary_text(std::string_view input);

}  // namespace canopy::fuzz
