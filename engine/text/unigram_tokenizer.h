#pragma once
// Unigram language models (Kudo, "Subword Regularization", 2018) as Hugging Face's tokenizer.json has them: a piece of
// text is cut into the tokens whose scores, logarithms of probabilities, have the largest sum (Viterbi).

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "engine/text/pipeline_tokenizer.h"
#include "engine/text/prefix_tree.h"
#include "engine/text/vocabulary.h"

namespace canopy {

class UnigramTokenizer final : public PipelineTokenizer {
 public:
  struct Options {
    TextNormalizer normalizer;
    PreTokenizer pre_tokenizer;
    std::vector<double> scores;  // by id
    std::optional<uint32_t> unknown;
    bool drops_leading_space = false;  // of a decoded text
  };

  /// `data` has tokens, types and the special ids; characters without a token become byte tokens where the vocabulary
  /// has all that are needed, else the unknown token, one for several in a row. Throws Error(bad_input) when lists
  /// differ in length, a score is no number, or there is neither an unknown token nor a token for every byte.
  UnigramTokenizer(const VocabularyData& data, std::vector<AddedToken> added, Options options);

 private:
  struct Step;

  static Table table_of(const VocabularyData& data, std::vector<AddedToken> added, const Options& options);
  void encode_pieces(std::span<const std::string_view> pieces, std::vector<uint32_t>& ids) const override;
  void encode_piece(std::string_view piece, std::vector<Step>& steps, std::vector<uint32_t>& ids) const;
  void find_best(std::string_view piece, std::vector<Step>& steps) const;
  void append_unknown(std::string_view text, std::vector<uint32_t>& ids) const;

  PrefixTree tokens_;  // those that text may become
  std::vector<double> scores_;
  double unknown_score_ = 0;
  std::optional<uint32_t> unknown_;
  std::array<std::optional<uint32_t>, 256> byte_tokens_;
};

}  // namespace canopy
