#pragma once
// Tokenizing by the definitions: nothing is hashed, cached or queued, every merge looks through all pairs again. Slow
// and plain, so that it can be seen to be right; the engine's tokenizers are compared with it.

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
  /// Whether the reference covers a vocabulary: one of the pre-tokenizers it knows, and merges that can be read in one
  /// way only.
  static bool covers(const VocabularyData& data);

  /// For a vocabulary that the engine accepted and covers() too; its views must outlive this.
  explicit ReferenceTokenizer(const VocabularyData& data);

  /// Ids of a text without control tokens; any bytes.
  std::vector<uint32_t> encode(std::string_view text) const;

  /// The text as decoding its ids must give it back, where every byte has a token: composed where the model composes,
  /// with the spaces that the model puts behind added tokens, and U+FFFD for what is not UTF-8.
  std::string round_trip(std::string_view text) const;

 private:
  struct Merge {
    uint32_t rank = 0;
    uint32_t id = 0;
  };
  using Ids = std::vector<uint32_t>;
  // A user-defined token in the text, or a stretch between two.
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
  // The first token of a spelling, normal ones before others; it may be of any type but unused.
  std::map<std::string, uint32_t, std::less<>> spelled_;
  // The token that a piece of text is as a whole: normal, or else user-defined.
  std::map<std::string, uint32_t, std::less<>> whole_;
  std::vector<uint32_t> user_defined_;
  std::vector<uint32_t> better_;                           // by id: how many tokens have a higher score
  std::map<std::pair<uint32_t, uint32_t>, Merge> merges_;  // that are listed
};

}  // namespace canopy::fuzz
