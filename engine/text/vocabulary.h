#pragma once
// The data that a tokenizer is built from, the same for all file formats.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/text/added_tokens.h"

namespace canopy {

/// The numbers are those of GGUF's tokenizer.ggml.token_type.
enum class TokenType : int32_t { normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5, byte = 6 };

/// Views must stay valid only while the tokenizer is being built.
struct VocabularyData {
  std::string model;                     // GGUF's name of the algorithm: "gpt2" or "llama"
  std::string pre_tokenizer;             // "gpt2" only, e.g. "smollm"; see supported_pre_tokenizers()
  std::vector<std::string_view> tokens;  // by id; normal ones in the byte-level alphabet ("Ġthe") or with "▁the"
  std::vector<std::string_view> merges;  // "gpt2": "left right", best first
  std::vector<float> scores;             // "llama": by id; the token with the higher score merges first
  std::vector<int32_t> types;            // TokenType by id; empty: all normal
  std::optional<uint32_t> bos, eos, unknown, padding;
  std::optional<bool> add_bos;           // whether a raw prompt starts with bos; absent: what the kind implies
  std::optional<bool> add_space_prefix;  // "llama": whether text starts with a space of its own; absent: it does
  bool control_strips_right = false;     // "llama": white space behind control tokens and </s> is dropped, as in Phi-3
  std::string chat_template;             // Jinja, empty where the model brings none
};

/// Throws Error(bad_input) for a type outside 0 to 6. The id must be one of the vocabulary.
TokenType type_of_token(const VocabularyData& data, size_t id);

/// Makes control tokens of those that are by their names (engine/format/named_tokens.h), in types and in what is
/// recognised by its spelling, and takes away the merges that would make them of a text.
void apply_token_names(VocabularyData& data, std::vector<AddedToken>& added);

/// Throws Error(bad_input) when lists differ in length or an id lies outside the vocabulary.
void validate_vocabulary(const VocabularyData& data);

}  // namespace canopy
