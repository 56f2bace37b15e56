#pragma once
// Finds the spellings of added tokens in a text: the leftmost, and of those that start there the longest.

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace canopy {

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

}  // namespace canopy
