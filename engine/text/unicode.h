#pragma once
// UTF-8 that may be damaged or come in pieces, and texts compared whatever their case.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace canopy {

// Reading UTF-8 that may be damaged.

/// U+FFFD, which stands for bytes that are not UTF-8.
inline constexpr std::string_view replacement_character = "\xEF\xBF\xBD";

enum class Utf8Kind {
  valid,       // one whole character
  invalid,     // a maximal part of a character that cannot be completed (Unicode 15, section 3.9, table 3-8)
  incomplete,  // the text ends inside what may become a character
};

struct Utf8Unit {
  Utf8Kind kind = Utf8Kind::valid;
  size_t length = 0;  // bytes, at least 1
};

/// The unit at the front of a text that is not empty. Overlong forms, surrogates and values over U+10FFFF are invalid.
Utf8Unit next_utf8(std::string_view text);

/// Length of the longest valid front of a text.
size_t valid_utf8_prefix(std::string_view text);

/// The text with every invalid or incomplete unit replaced by U+FFFD.
std::string to_valid_utf8(std::string_view text);

/// Bytes in, whole UTF-8 characters out. Tokens end inside characters; a reader must never see half of one.
class Utf8Stream {
 public:
  /// Takes bytes and returns the text that is complete by now: valid UTF-8. Invalid bytes become U+FFFD, one for each
  /// maximal part of a character (the Unicode standard's recommendation); the start of a character that may still
  /// become whole is held back. However the bytes are cut into calls, the concatenated text is the same.
  std::string push(std::string_view bytes);

  /// Ends the text: what was held back becomes U+FFFD. The stream is then as new.
  std::string finish();

  /// Bytes held back: 0 to 3.
  size_t pending() const { return held_.size(); }

 private:
  std::string held_;
};

// Texts as people compare them: whatever their case, and however their accents are encoded.

/// A text with Unicode's full case folding, in canonical decomposition (NFD), without what is never seen (soft hyphens,
/// joiners, variation selectors). The four letters i of Turkish are one, as nothing says which language a text is in.
/// Keeps which bytes of the text the folded ones came from: folding changes lengths (German sharp s, Turkish dotted I).
class FoldedText {
 public:
  FoldedText() = default;
  /// Bytes that are not UTF-8 stay as they are.
  explicit FoldedText(std::string_view text);

  const std::string& folded() const { return folded_; }

  struct Hit {
    size_t begin = 0, end = 0;  // bytes of the text, whole characters
    size_t next = 0;            // where a search goes on, in folded()
  };
  /// The first place of `wanted` in the text at or behind byte `from` of folded(). A letter is not found in the same
  /// letter with an accent, nor a Korean syllable in a longer one. Nothing where `wanted` is empty.
  std::optional<Hit> find(const FoldedText& wanted, size_t from = 0) const;

 private:
  /// A stretch of the text whose folded form is not made of as many bytes, one character for one. Between two of them,
  /// the bytes of text and folded text correspond.
  struct Stretch {
    size_t folded_begin, folded_end, begin, end;
  };
  size_t begin_of(size_t folded) const;
  size_t end_of(size_t folded) const;

  std::string folded_;
  std::vector<Stretch> stretches_;
};

/// The folded text itself, to compare and sort by.
std::string fold_case(std::string_view text);

}  // namespace canopy
