#pragma once
// Tokenizers of Hugging Face folders: tokenizer_config.json, and tokenizer.json with the pipeline around its model.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/text/vocabulary.h"

namespace canopy {

/// Ids are positions in a table; real vocabularies end below 2^18.
inline constexpr uint32_t most_token_ids = 1u << 20;

struct HuggingFaceConfig {
  std::string bos, eos, padding;  // spellings; empty: none
  std::optional<bool> add_bos;    // whether a raw prompt starts with bos
  bool legacy = true;             // of SentencePiece: each segment of a text begins with a space of its own
  bool add_prefix_space = true;   // where not legacy: a text does
  std::vector<AddedToken> added;  // added_tokens_decoder, by id
  std::string chat_template;      // Jinja; empty: none
};

/// Reads tokenizer_config.json; an empty text gives an empty config. Throws Error(bad_input) where it is damaged or a
/// field is of another type than expected.
HuggingFaceConfig read_hugging_face_config(std::string_view text);

}  // namespace canopy
