#pragma once
// SentencePiece's compiled normalizer ("precompiled_charsmap"): a table of texts and what replaces each. It is a double
// array of Darts (Yata, "darts-clone"), a trie over bytes whose nodes are words of 32 bits, behind its size, and then
// the replacements, each ended by a zero.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace canopy {

class CompiledNormalizer {
 public:
  /// Checks all that following the table relies on, as the sentencepiece library follows it without looking: no step
  /// leaves the trie, no text has more prefixes than the library has room for, every replacement is whole UTF-8, ends,
  /// and is no longer than any text needs. Throws bad_input naming `what`.
  CompiledNormalizer(std::string_view table, std::string_view what);

  /// Replaces like Hugging Face's "Precompiled": clusters of less than six bytes as a whole, by the replacement of the
  /// first of their prefixes that has one; else each character. Valid UTF-8 to valid UTF-8.
  std::string apply(std::string_view text) const;

 private:
  std::optional<std::string_view> replacement_of(std::string_view chunk) const;
  void append(std::string_view cluster, std::string& out) const;

  std::vector<uint32_t> units_;
  std::string replacements_;
};

}  // namespace canopy
