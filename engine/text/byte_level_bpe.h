#pragma once
// Byte-level byte pair encoding (GPT-2, Llama 3, Qwen, SmolLM): a piece of text starts as single bytes, and the pair
// of neighbours that was learned earliest merges first, until no pair is known.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/text/pre_tokenizer.h"
#include "engine/text/tokenizer.h"
#include "engine/text/vocabulary.h"

namespace canopy {

class ByteLevelBpe final : public Tokenizer {
 public:
  struct Options {
    Normalizer normalizer = Normalizer::none;
    bool ignore_merges = false;
  };

  /// added lists the tokens that are recognised by their spelling. Throws Error(bad_input) when a merge names a token
  /// that is not in the vocabulary, or an id lies outside it.
  ByteLevelBpe(const VocabularyData& data, std::vector<AddedToken> added, PreTokenizer pre_tokenizer, Options options);

  /// The control and user-defined tokens of a GGUF vocabulary.
  static std::vector<AddedToken> added_by_type(const VocabularyData& data);

 private:
  struct Merge {
    uint32_t rank = 0;
    uint32_t id = 0;  // of the merged token
  };

  void encode_ordinary(std::string_view bytes, std::vector<uint32_t>& ids) const override;
  void encode_valid(std::string_view text, std::vector<uint32_t>& ids) const;
  void encode_piece(std::string_view piece, std::vector<uint32_t>& ids) const;
  void merge_piece(std::vector<uint32_t> symbols, std::vector<uint32_t>& ids) const;
  const Merge* find_merge(uint32_t left, uint32_t right) const;
  void index_bytes(const std::unordered_map<std::string_view, uint32_t>& ids);
  void index_merges(const VocabularyData& data, const std::unordered_map<std::string_view, uint32_t>& ids);
  void index_whole_tokens();

  PreTokenizer pre_tokenizer_;
  Options options_;
  std::array<std::optional<uint32_t>, 256> byte_ids_;     // what a byte starts as; none: it is dropped
  std::unordered_map<uint64_t, Merge> merges_;            // by left id << 32 | right id
  std::unordered_map<std::string_view, uint32_t> whole_;  // ids by bytes; filled where merges may be ignored
};

}  // namespace canopy
