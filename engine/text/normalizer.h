#pragma once
// The normalization of a text before it is cut into pieces: Unicode's normal forms, SentencePiece's compiled tables,
// and the chain of steps that a tokenizer's file lists.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "engine/text/pre_tokenizer.h"
#include "engine/text/vocabulary.h"

namespace canopy {

// Unicode's normal forms.

enum class UnicodeForm { nfc, nfd, nfkc, nfkd };

bool is_ascii(std::string_view text);

/// The text in a Unicode normal form. The text must be valid UTF-8. Runs of more than 256 combining marks, which no
/// language writes, are normalised in parts: sorting them takes quadratic time. Throws Error when memory runs out.
std::string to_unicode_form(std::string_view text, UnicodeForm form);

// SentencePiece's compiled normalizer ("precompiled_charsmap"): a table of texts and what replaces each. It is a double
// array of Darts (Yata, "darts-clone"), a trie over bytes whose nodes are words of 32 bits, behind its size, and then
// the replacements, each ended by a zero.

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

/// The normalization of a text: a chain of steps, as the tokenizer's file lists them.
class TextNormalizer {
 public:
  struct Unicode {
    UnicodeForm form = UnicodeForm::nfc;
  };
  /// Puts a text in front of a segment.
  struct Prepend {
    std::string text;
    bool only_at_text_start = false;
    bool unless_there = false;  // not in front of a segment that begins with it
  };
  /// Replaces every occurrence of a literal.
  struct Replace {
    std::string from;
    std::string to;
  };
  /// Replaces every match of an expression by a literal.
  struct ReplaceMatches {
    Regex regex;
    std::string to;
  };
  /// Replaces what a table lists.
  struct Compiled {
    std::shared_ptr<const CompiledNormalizer> table;
  };
  using Step = std::variant<Unicode, Prepend, Replace, ReplaceMatches, Compiled>;

  TextNormalizer() = default;
  explicit TextNormalizer(std::vector<Step> steps) : steps_(std::move(steps)) {}

  /// The result is the text itself where nothing changes, or a view into `buffer`. The text must be valid UTF-8.
  /// Throws Error(bad_input) when steps make far more of a text than any language's normal form would.
  std::string_view apply(std::string_view text, TextPlace place, std::string& buffer) const;

 private:
  std::vector<Step> steps_;
};

}  // namespace canopy
