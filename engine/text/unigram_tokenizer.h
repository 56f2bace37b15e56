#pragma once
// Unigram language models: a piece of text is cut into the tokens whose scores have the largest sum.

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/text/tokenizer.h"
#include "engine/text/vocabulary.h"

namespace canopy {

/// Finds all tokens that a text begins with.
class PrefixTree {
 public:
  PrefixTree() = default;
  /// Tokens with their ids; empty ones are left out, and of equal ones the last id counts.
  explicit PrefixTree(std::vector<std::pair<std::string_view, uint32_t>> tokens);

  /// Calls found(length, id) for each token that the text begins with, the shortest first.
  template <class F>
  void for_each_prefix(std::string_view text, F&& found) const {
    uint32_t node = 0;
    for (size_t at = 0; at < text.size() && node < nodes_.size(); ++at) {
      const uint32_t child = child_of(node, static_cast<unsigned char>(text[at]));
      if (child == none) return;
      node = child;
      if (nodes_[node].token != none) found(at + 1, nodes_[node].token);
    }
  }

 private:
  static constexpr uint32_t none = 0xFFFFFFFF;
  struct Node {
    uint32_t children = 0;  // the first of them; they lie one after the other, by their bytes
    uint32_t token = none;
    uint16_t count = 0;  // of children
    unsigned char byte = 0;
  };

  uint32_t child_of(uint32_t node, unsigned char byte) const;

  std::vector<Node> nodes_;
};

// Unigram language models (Kudo, "Subword Regularization", 2018) as Hugging Face's tokenizer.json has them: a piece of
// text is cut into the tokens whose scores, logarithms of probabilities, have the largest sum (Viterbi).

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
