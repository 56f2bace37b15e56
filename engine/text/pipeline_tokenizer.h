#pragma once
// What tokenizers of all kinds do around their model: normalize a text, find the tokens that are looked for in
// normalized text, cut the rest into pieces. A model makes ids of pieces.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/text/pre_tokenizer.h"
#include "engine/text/text_normalizer.h"
#include "engine/text/tokenizer.h"
#include "engine/text/vocabulary.h"

namespace canopy {

class PipelineTokenizer : public Tokenizer {
 protected:
  /// What every vocabulary of tokens says of itself; the bytes of its tokens are the model's to add. Throws
  /// Error(bad_input) for an invalid vocabulary.
  static Table table_of(const VocabularyData& data, std::vector<AddedToken> added, bool drops_leading_space);

  PipelineTokenizer(Table table, TextNormalizer normalizer, PreTokenizer pre_tokenizer);

  /// Appends the ids of pieces of normalized text, or of a byte that is no UTF-8, which is a piece alone.
  virtual void encode_pieces(std::span<const std::string_view> pieces, std::vector<uint32_t>& ids) const = 0;

 private:
  void encode_ordinary(std::string_view bytes, TextPlace place, std::vector<uint32_t>& ids) const final;

  TextNormalizer normalizer_;
  PreTokenizer pre_tokenizer_;
  AddedTokens normalized_added_;
};

}  // namespace canopy
