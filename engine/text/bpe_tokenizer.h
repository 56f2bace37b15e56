#pragma once
// Byte pair encoding: an index of tokens, the symbols of a piece, the table of merges, and the tokenizer made of them.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/text/tokenizer.h"
#include "engine/text/vocabulary.h"

namespace canopy {

/// Tokens by their text.
class TokenIndex {
 public:
  TokenIndex();

  /// Of tokens with the same text the first counts. Empty texts and ids of 2^32 - 1 are not kept. Throws
  /// Error(bad_input) when the texts together exceed 4 GiB.
  void add(std::string_view text, uint32_t id);

  std::optional<uint32_t> find(std::string_view text) const;

  /// Length in bytes of the longest token.
  size_t longest() const { return longest_; }

 private:
  /// In 32 bits each, since there is one for every token: vocabularies have hundreds of thousands.
  struct Entry {
    uint32_t begin = 0;  // in texts_
    uint32_t length = 0;
    uint32_t id = 0;
  };
  struct Slot {
    uint32_t tag = 0;    // half of the hash, compared before the text is
    uint32_t entry = 0;  // index + 1; 0: free
  };

  size_t slot_of(std::string_view text, uint64_t hash) const;
  std::string_view text_of(const Entry& entry) const {
    return std::string_view(texts_).substr(entry.begin, entry.length);
  }
  void grow();

  std::string texts_;  // of all tokens, one after the other
  std::vector<Entry> entries_;
  std::vector<Slot> slots_;  // open addressing; the number of slots is a power of two
  size_t longest_ = 0;
};

/// The symbols that merging starts from: the bytes of a piece, or its characters.
class BaseSymbols {
 public:
  /// The substitute for a character that has no token.
  struct Fallback {
    std::array<std::optional<uint32_t>, 256> byte_tokens;  // used when every byte of the character has one
    std::optional<uint32_t> unknown;                       // otherwise; absent: nothing does, it is dropped
    bool fuses_unknown = false;                            // several in a row become one
    bool holds_place = false;  // place_holder stands for unknown ones, several in a row being one, while symbols merge
  };

  /// No token: merges with nothing, so that what stands around a character without a token stays apart.
  static constexpr uint32_t place_holder = 0xFFFF'FFFE;

  /// Each byte by the token that GPT-2's alphabet writes it as. A byte without one is unknown.
  static BaseSymbols of_bytes(const TokenIndex& tokens, std::optional<uint32_t> unknown);

  /// Each character by its token. The index must outlive this.
  static BaseSymbols of_characters(const TokenIndex& tokens, const Fallback& fallback);

  /// Appends the symbols of a piece, valid UTF-8 or not: bytes that are no character count as one each.
  void append(std::string_view piece, std::vector<uint32_t>& symbols) const;

  /// Puts the unknown token where a place was held for it, or nothing where there is none. To be called when the
  /// symbols have merged.
  void release_places(std::vector<uint32_t>& symbols) const;

  /// Whether some character has neither a token nor anything that takes its place.
  bool drops_characters() const;

 private:
  void append_fallback(std::string_view character, std::vector<uint32_t>& symbols) const;

  const TokenIndex* characters_ = nullptr;               // null: symbols are bytes
  std::array<std::optional<uint32_t>, 256> single_ids_;  // by byte; of characters, the ASCII ones
  Fallback fallback_;
};

/// The merges: which neighbours become one token, and which of them first.
class MergeTable {
 public:
  struct Merge {
    uint32_t rank = 0;  // lower merges first
    uint32_t id = 0;    // of the merged token
  };

  /// Memory that merging works in, kept from piece to piece so that nothing is allocated for each.
  struct Scratch {
    std::vector<uint32_t> rank, id;        // of the pair that begins at a symbol
    std::vector<uint32_t> next, previous;  // neighbours that are still there
    std::vector<uint64_t> queue;           // rank << 32 | position
  };

  /// Room for that many merges.
  explicit MergeTable(size_t expected = 0);

  /// Of several merges of one pair the first counts.
  void add(uint32_t left, uint32_t right, Merge merge);

  /// Null when the pair does not merge.
  const Merge* find(uint32_t left, uint32_t right) const {
    const uint64_t key = key_of(left, right);
    for (size_t at = home(key);; at = (at + 1) & mask_) {
      const Slot& slot = slots_[at];
      if (slot.key == key) return &slot.merge;
      if (slot.key == empty) return nullptr;
    }
  }

  /// Merges neighbours, the lowest rank first and of equal ranks the leftmost, until no pair is known.
  /// At most 2^32 - 2 symbols. Time n log n.
  void apply(std::vector<uint32_t>& symbols, Scratch& scratch) const;

 private:
  // No id is 2^32 - 1, so no pair has this key.
  static constexpr uint64_t empty = ~uint64_t{0};

  struct Slot {
    uint64_t key = empty;
    Merge merge;
  };

  static uint64_t key_of(uint32_t left, uint32_t right) { return uint64_t{left} << 32 | right; }
  size_t home(uint64_t key) const {
    key ^= key >> 29;
    key *= 0xBF58476D1CE4E5B9u;
    return static_cast<size_t>(key >> 32) & mask_;
  }
  void grow(size_t capacity);
  void apply_short(std::vector<uint32_t>& symbols, Scratch& scratch) const;
  void apply_long(std::vector<uint32_t>& symbols, Scratch& scratch) const;

  std::vector<Slot> slots_;  // open addressing; the number of slots is a power of two
  size_t mask_ = 0;
  size_t used_ = 0;
};

// Byte pair encoding. A piece of text starts as single symbols, bytes (GPT-2, Llama 3, Qwen, SmolLM) or characters
// (SentencePiece: Llama 2, Mistral, Gemma), and the pair of neighbours that was learned earliest merges first, until
// no pair is known.

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
