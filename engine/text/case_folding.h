#pragma once
// Texts as people compare them: whatever their case, and however their accents are encoded.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace canopy {

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

/// Whether `text` contains `wanted`, as FoldedText finds it; true where `wanted` is empty.
bool contains_folded(std::string_view text, std::string_view wanted);

}  // namespace canopy
