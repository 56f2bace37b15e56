#pragma once
// The vocabulary that a tokenizer is built from: its tokens, how they spell bytes and spaces, and the added ones,
// which are found by their spelling.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace canopy {

// Finds the spellings of added tokens in a text: the leftmost, and of those that start there the longest.

struct AddedToken {
  uint32_t id = 0;
  std::string spelling;
  bool special = true;              // a control token; recognised only where the text may hold structure
  bool strips_left = false;         // takes the white space in front of it
  bool strips_right = false;        // takes the white space behind it
  bool single_word = false;         // only where no letter, digit, mark or "_" stands beside it
  bool in_normalized_text = false;  // looked for after normalization; otherwise in the text as it was written
};

/// Where a stretch of text stands. Segments are what lies between two added tokens.
enum class TextPlace { text_start, segment_start, inside };

struct TextRange {
  size_t begin = 0;
  size_t end = 0;
};

class AddedTokens {
 public:
  /// Empty spellings are ignored; of equal ones the first that may be recognised counts.
  explicit AddedTokens(std::vector<AddedToken> tokens);

  struct Match {
    size_t begin = 0;  // bytes in the text, stripped white space included
    size_t end = 0;
    const AddedToken* token = nullptr;
  };

  /// The first match that begins at `from` or later. A special token counts only where it lies wholly inside one of
  /// the ranges, which are sorted and do not overlap.
  std::optional<Match> find(std::string_view text, size_t from, std::span<const TextRange> special_ranges) const;

  /// Null when no added token is spelled like this.
  const AddedToken* lookup(std::string_view spelling) const;

 private:
  // A trie over bytes; node 0 is the root. The first step is an array, for almost every byte of a text stops there.
  struct Node {
    std::unordered_map<unsigned char, uint32_t> next;
    int64_t token = -1;     // index into tokens_
    int64_t ordinary = -1;  // of the first that is no special token
  };

  const AddedToken* longest_at(std::string_view text, size_t at, std::span<const TextRange> special_ranges) const;

  std::vector<AddedToken> tokens_;
  std::vector<Node> nodes_;
  std::array<uint32_t, 256> first_ = {};  // node after one byte; 0: none
};

// The alphabet of byte-level vocabularies (GPT-2's): every byte is written as one printable character, so a token is a
// string of characters. Printable bytes of Latin-1 stand for themselves; the other 68 follow from U+0100 on.

/// The character, as UTF-8, that stands for a byte.
std::string_view byte_level_character(unsigned char byte);

/// The bytes a token stands for; a token with a character outside the alphabet stands for itself.
std::string bytes_of_token(std::string_view token);

// The tokens by which SentencePiece-like vocabularies write spaces (U+2581) and single bytes (<0x0A>).

/// U+2581, which stands for a space.
inline constexpr std::string_view word_mark = "\xE2\x96\x81";

/// The text of a token: marks become spaces.
std::string text_of_marked(std::string_view token);

/// "<0x0A>" -> 10; absent for anything else.
std::optional<uint32_t> byte_of_token(std::string_view token);

// The data that a tokenizer is built from, the same for all file formats.

/// The numbers are those of GGUF's tokenizer.ggml.token_type.
enum class TokenType : int32_t { normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5, byte = 6 };

/// Views must stay valid only while the tokenizer is being built.
struct VocabularyData {
  std::string model;                     // GGUF's name of the algorithm: "gpt2", "llama" or "gemma4"
  std::string pre_tokenizer;             // "gpt2" only, e.g. "smollm"; see PreTokenizer::named()
  std::vector<std::string_view> tokens;  // by id; normal ones in the byte-level alphabet ("Ġthe") or with "▁the"
  std::vector<std::string_view> merges;  // "gpt2", "gemma4": "left right", best first
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

/// Makes control tokens of those that are by their names (engine/format/model_file.h), in types and in what is
/// recognised by its spelling, and takes away the merges that would make them of a text.
void apply_token_names(VocabularyData& data, std::vector<AddedToken>& added);

/// Throws Error(bad_input) when lists differ in length or an id lies outside the vocabulary.
void validate_vocabulary(const VocabularyData& data);

}  // namespace canopy
