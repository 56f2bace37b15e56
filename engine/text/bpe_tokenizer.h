#pragma once
// Byte pair encoding. A piece of text starts as single symbols, bytes (GPT-2, Llama 3, Qwen, SmolLM) or characters
// (SentencePiece: Llama 2, Mistral, Gemma), and the pair of neighbours that was learned earliest merges first, until
// no pair is known.

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/text/base_symbols.h"
#include "engine/text/merge_table.h"
#include "engine/text/pipeline_tokenizer.h"
#include "engine/text/token_index.h"
#include "engine/text/vocabulary.h"

namespace canopy {

class BpeTokenizer final : public PipelineTokenizer {
 public:
  enum class Alphabet { bytes, characters };

  struct Options {
    Alphabet alphabet = Alphabet::bytes;
    TextNormalizer normalizer;
    PreTokenizer pre_tokenizer;
    bool ranks_by_score = false;       // merges follow from the scores, of neighbours in the text; else they are listed
    bool ignore_merges = false;        // a piece that is a whole token stays one
    std::optional<uint32_t> unknown;   // stands for what has no token, nor byte tokens; absent: it is dropped
    bool fuses_unknown = false;        // several unknown characters in a row become one token
    bool drops_leading_space = false;  // of a decoded text
  };

  /// added lists the tokens that are recognised by their spelling. Throws Error(bad_input) when a merge names a token
  /// that is not in the vocabulary, or an id lies outside it.
  BpeTokenizer(const VocabularyData& data, std::vector<AddedToken> added, Options options);

 private:
  // What is known of a token's text: whether merging its symbols gives the token back, so that merging can be skipped.
  enum class Whole : uint8_t { not_tried, yes, no };

  struct Scratch {
    std::vector<uint32_t> symbols;
    MergeTable::Scratch merging;
  };

  bool keeps_marks_apart(const VocabularyData& data) const;
  static Table table_of(const VocabularyData& data, std::vector<AddedToken> added, const Options& options);
  void encode_pieces(std::span<const std::string_view> pieces, std::vector<uint32_t>& ids) const override;
  void encode_words(std::string_view text, Scratch& scratch, std::vector<uint32_t>& ids) const;
  void encode_piece(std::string_view piece, Scratch& scratch, std::vector<uint32_t>& ids) const;

  Options options_;
  TokenIndex whole_;  // tokens as they look in a piece
  BaseSymbols base_;
  MergeTable merges_;
  bool cuts_words_ = false;  // no merge reaches across the front of a word, so each can be encoded alone
  mutable std::vector<std::atomic<Whole>> reproduced_;  // by id; a cache, filled as tokens are met
};

}  // namespace canopy
