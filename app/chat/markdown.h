#pragma once
// Markdown as a flat list of blocks, each of which can be laid out alone. Each piece of shown text has its position in
// the source, so that tokens, selections and search hits in the source can be marked on the screen.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace canopy::app {

enum TextStyle : uint8_t {  // bits
  kPlain = 0,
  kStrong = 1,
  kEmphasis = 2,
  kCode = 4,
  kStruck = 8,
  kMaths = 16,    // a formula, without its delimiters
  kUnended = 32,  // of a formula: more of it is still to come
  kNote = 64,     // the label of a footnote
};

/// Bytes [begin, end) of a block's text, shown for [source, source_end) of the source: byte by byte where both have the
/// same length, else as a whole (an entity).
struct TextRun {
  static constexpr uint32_t no_source = UINT32_MAX;
  static constexpr uint16_t no_link = UINT16_MAX;

  uint32_t begin = 0, end = 0;
  uint32_t source = no_source, source_end = no_source;
  uint8_t style = kPlain;
  uint16_t link = no_link;  // index in Block::links
};

struct TableCell {
  uint32_t begin = 0, end = 0;  // of the block's text
  uint32_t row = 0, column = 0;
  enum class Align : uint8_t { left, centre, right } align = Align::left;
};

struct Block {
  enum class Kind : uint8_t { paragraph, heading, code, rule, table, formula };

  Kind kind = Kind::paragraph;
  uint8_t level = 0;               // of a heading, 1 ... 6
  uint8_t indent = 0;              // number of lists around it
  uint8_t quotes = 0;              // number of block quotes around it
  std::string around;              // both, from the outside: 'l' a list, 'q' a quote
  uint8_t shared = 0;              // how many of them, from the outside, the block before is in too
  std::string marker;              // of the list item that begins here: "•", "2."
  std::string language;            // of a code block, as written; may be empty
  std::string text;                // UTF-8; a line break is '\n'
  std::vector<TextRun> runs;       // without gaps, in the order of the text
  std::vector<std::string> links;  // addresses
  std::vector<TableCell> cells;    // row by row; row 0 is the head
  uint32_t columns = 0;
  uint32_t source_begin = 0, source_end = 0;  // range of all its runs

  /// The ranges of the block's text that show bytes of [from, to) of the source, in the order of the text.
  std::vector<std::pair<uint32_t, uint32_t>> shown_of(uint32_t from, uint32_t to) const;
  /// The source position of a byte of the block's text; for the end of the text the end of the source range.
  uint32_t source_of(uint32_t byte) const;
};

/// Parses Markdown that begins at byte `offset` of its source. HTML is shown as text. Of text that is `growing`, marks
/// whose end is still to come count as ended.
std::vector<Block> parse_markdown(std::string_view text, uint32_t offset = 0, bool growing = false);

/// The text unchanged, as one paragraph; used for the user's messages.
std::vector<Block> plain_block(std::string_view text);

/// The blocks of a growing text. Blocks that cannot change any more are parsed once; only the rest is parsed again.
class MarkdownText {
 public:
  /// `text` is the text of the last call with more at the end, or another one (shorter, or after clear()). `growing`:
  /// more is to come.
  void update(std::string_view text, bool growing = false);
  void clear() { *this = {}; }

  const std::vector<Block>& blocks() const { return blocks_; }
  /// Number of blocks at the beginning that will not change any more.
  size_t closed() const { return closed_blocks_; }

 private:
  std::vector<Block> blocks_;
  size_t closed_blocks_ = 0, closed_bytes_ = 0, bytes_ = 0;
  bool growing_ = false;
};

/// Start of the last part of the text that may still change when more text comes. `from` is the result of an earlier
/// call, or 0. The part begins after an empty line outside fenced code, at a line without indentation.
size_t open_tail(std::string_view text, size_t from);

}  // namespace canopy::app
