#pragma once
// The parts of a Hugging Face tokenizer.json around its model: normalizer, pre-tokenizer, decoder, post-processor. Only
// what is understood is accepted: a part that is skipped would silently give other ids than the model was trained on.

#include <string>
#include <vector>

#include "engine/format/json_text.h"
#include "engine/text/pre_tokenizer.h"
#include "engine/text/text_normalizer.h"

namespace canopy {

struct HuggingFacePipeline {
  TextNormalizer normalizer;
  PreTokenizer pre_tokenizer;
  bool is_byte_level = false;        // pieces are bytes in GPT-2's alphabet; otherwise characters
  bool drops_leading_space = false;  // in decoded text
  std::string leading_token;         // put in front of every text by the post-processor; empty: nothing
};

/// Reads the parts from the root of tokenizer.json. Throws Error(bad_input) naming the part that is not supported, or
/// the field that is missing or of another type.
HuggingFacePipeline read_hugging_face_pipeline(const JsonFields& root);

/// Throws Error(bad_input): the `what` of this name is not supported.
[[noreturn]] void refuse_tokenizer_part(const char* what, const std::string& actual, const char* supported);

}  // namespace canopy
