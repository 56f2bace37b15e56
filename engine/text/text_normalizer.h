#pragma once
// The normalization of a text before it is cut into pieces: a chain of steps, as the tokenizer's file lists them.

#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "engine/text/added_tokens.h"
#include "engine/text/compiled_normalizer.h"
#include "engine/text/normalizer.h"
#include "engine/text/regex.h"

namespace canopy {

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
