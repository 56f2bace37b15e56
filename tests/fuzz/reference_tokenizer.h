#pragma once
// Tokenizes by the definitions: nothing is hashed, cached or queued, and every merge looks at all pairs again. Slow but
// simple enough to be checked by reading; the engine's tokenizers are compared with it.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/text/vocabulary.h"

namespace canopy::fuzz {

class ReferenceTokenizer {
 public:
  /// Whether the reference supports a vocabulary: it must have one of the known pre-tokenizers, and merges that can be
  /// read in only one way.
  static bool covers(const VocabularyData& data);

  /// For a vocabulary that the engine accepted and that covers() allows; its views must outlive this object.
  explicit ReferenceTokenizer(const VocabularyData& data);

  /// The ids of a text without control tokens; the text may be any bytes.
  std::vector<uint32_t> encode(std::string_view text) const;

  /// The text that decoding its ids must give, if every byte has a token: composed if the model composes, with the
  /// spaces that the model adds after added tokens, and U+FFFD for bytes that are not UTF-8.
  std::string round_trip(std::string_view text) const;

 private:
  struct Merge {
    uint32_t rank = 0;
    uint32_t id = 0;
  };
  using Ids = std::vector<uint32_t>;
  // A user-defined token in the text, or the text between two of them.
  struct Part {
    std::string_view text;
    std::optional<uint32_t> token;
  };

  bool is_byte_level() const { return data_.model == "gpt2"; }
  TokenType type(size_t id) const { return type_of_token(data_, id); }
  void list_tokens();
  void list_merges();
  std::vector<Part> parts_of(std::string_view text) const;
  std::optional<uint32_t> user_defined_at(std::string_view text) const;
  std::optional<Merge> merge_of(uint32_t left, uint32_t right) const;
  std::string normalized(std::string_view text, bool is_segment_start) const;
  Ids symbols_of(std::string_view piece) const;
  void append_character(std::string_view character, Ids& symbols) const;
  void encode_segment(std::string_view text, Ids& ids) const;
  void encode_piece(std::string_view piece, Ids& ids) const;

  VocabularyData data_;
  // The first token with a spelling, normal ones before others, of any type but unused.
  std::map<std::string, uint32_t, std::less<>> spelled_;
  // The token for a piece of text as a whole: a normal one, or else a user-defined one.
  std::map<std::string, uint32_t, std::less<>> whole_;
  std::vector<uint32_t> user_defined_;
  std::vector<uint32_t> better_;                           // by id: number of tokens with a higher score
  std::map<std::pair<uint32_t, uint32_t>, Merge> merges_;  // the listed merges
};

}  // namespace canopy::fuzz
