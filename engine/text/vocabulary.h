#pragma once
// What a tokenizer is built from, whatever the file format it came from.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace canopy {

/// The numbers are those of GGUF's tokenizer.ggml.token_type.
enum class TokenType : int32_t { normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5, byte = 6 };

enum class Normalizer { none, nfc };

/// Views must stay valid only while the tokenizer is being built.
struct VocabularyData {
  std::string model;                     // GGUF's name of the algorithm; "gpt2" is byte-level BPE
  std::string pre_tokenizer;             // e.g. "smollm"; see supported_pre_tokenizers()
  std::vector<std::string_view> tokens;  // by id; normal tokens in the byte-level alphabet ("Ġthe")
  std::vector<std::string_view> merges;  // "left right", best first
  std::vector<int32_t> types;            // TokenType by id; empty: all normal
  std::optional<uint32_t> bos, eos, unknown, padding;
  bool add_bos = false;                     // whether a raw prompt starts with bos
  std::optional<Normalizer> normalizer;     // absent: what the pre-tokenizer's name implies (NFC for Qwen's)
  std::optional<bool> ignore_merges;        // a piece that is a whole token stays one; absent: by the name as well
  std::optional<uint32_t> token_less_byte;  // stands for a byte without a token of its own; absent: the byte is dropped
  std::string chat_template;                // Jinja, empty where the model brings none
};

}  // namespace canopy
