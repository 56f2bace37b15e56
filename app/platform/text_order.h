#pragma once
// The order in which the letters of a line are seen, by Unicode's bidirectional algorithm (UAX #9, through FriBidi),
// and which letters cannot be drawn one beside the other as they are stored.

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace canopy::app {

/// The character at a byte of a text, and its length in bytes: U+FFFD and 1 for what is not UTF-8.
struct Character {
  char32_t c = 0;
  uint32_t length = 1;
};
Character character_at(std::string_view text, size_t at);

/// Letters that are joined, reordered or put together before they are drawn: Arabic and its relatives, the scripts of
/// India and South-East Asia, Mongolian, and emoji.
bool needs_shaping(char32_t c);
/// What belongs to the letter before it: joiners, selectors, combining marks, skin tones.
bool stays_with_letter(char32_t c);
/// Characters that are never drawn: joiners, selectors, marks of direction.
bool is_invisible(char32_t c);
/// Characters that each program gives a meaning of its own, and no text means.
bool is_private(char32_t c);
/// Spaces of all widths.
bool is_space(char32_t c);
/// The other one of a pair of brackets, which a line from right to left shows in its place; else the character itself.
char32_t mirrored(char32_t c);

/// Which way a paragraph runs: as its first letter with a direction says, or as code, always from left to right and
/// with marks of direction ignored, so that nothing is seen elsewhere than it stands.
enum class ParagraphWay : uint8_t { by_text, code };

/// What is needed to order the lines of a text after it was wrapped.
struct TextOrder {
  std::vector<uint8_t> levels;  // by byte: odd for what is read from right to left. Empty: all is from left to right
  std::vector<uint8_t> base;    // by byte, of its paragraph: 1 for a paragraph from right to left
  bool plain() const { return levels.empty(); }
  bool rtl_paragraph(size_t byte) const { return byte < base.size() && base[byte] != 0; }
};

/// The order of bytes [begin, end) of a text, whose paragraphs end at '\n', is added to what is known of other parts.
void find_order(std::string_view text, size_t begin, size_t end, ParagraphWay way, TextOrder& order);
TextOrder order_of(std::string_view text, ParagraphWay way = ParagraphWay::by_text);

/// A stretch of a line that is read in one direction.
struct OrderedRun {
  uint32_t begin = 0, end = 0;  // bytes of the text
  bool rtl = false;
};

/// The stretches of a line, bytes [begin, end) of the text, from left to right.
std::vector<OrderedRun> ordered_runs(std::string_view text, const TextOrder& order, uint32_t begin, uint32_t end);

/// Whether a text has nothing but what is drawn letter by letter from left to right. Fast for Latin text.
bool is_plain(std::string_view text);
/// Whether letters one beside the other in the order of typing cannot be read: they should be joined, or turned round.
bool reads_unlike_typed(std::string_view text);

}  // namespace canopy::app
