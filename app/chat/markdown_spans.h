#pragma once
// What people write in Markdown and md4c does not know: formulas between the delimiters of TeX, footnotes, line breaks
// of HTML. Found before md4c sees the text, which then takes each for one long word.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace canopy::app {

struct MarkdownSpan {
  enum class Kind : uint8_t { formula, display, note, note_text, line_break };

  size_t begin = 0, end = 0;              // bytes of the text, delimiters included
  size_t inner_begin = 0, inner_end = 0;  // without them, nor blanks inside them; of a note its label
  Kind kind = Kind::formula;
  bool open = false;  // its end has not been written yet
};

/// The spans of a text, in order. None is in code. While the text is `growing`, a formula may be open at its end even
/// where $ alone says so.
std::vector<MarkdownSpan> find_spans(std::string_view text, bool growing = false);

/// The text without its last part, where that could still become anything, and with the ends of what is open: `**bold`
/// is bold before its end has come, and the first line of a table is a table. What is added shows no character.
std::string completed(std::string_view text);

/// How many fence characters (after at most three spaces) a line begins with; 0 if it is no fence.
size_t fence_of(std::string_view line, char& mark);
/// Whether a line ends code that began with `length` characters `mark`.
bool ends_fence(std::string_view line, char mark, size_t length);

}  // namespace canopy::app
