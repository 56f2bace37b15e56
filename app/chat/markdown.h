#pragma once
// Markdown as a flat list of blocks that can be laid out one by one. Every piece of shown text knows which bytes of the
// source it stands for, so that tokens, selections and search hits found in the source can be marked on the screen.

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
};

/// Bytes [begin, end) of a block's text. They stand for [source, source_end) of the source, byte for byte where both
/// have the same length, else as a whole (an entity).
struct TextRun {
  static constexpr uint32_t no_source = UINT32_MAX;
  static constexpr uint16_t no_link = UINT16_MAX;

  uint32_t begin = 0, end = 0;
  uint32_t source = no_source, source_end = no_source;
  uint8_t style = kPlain;
  uint16_t link = no_link;  // in Block::links
};

struct TableCell {
  uint32_t begin = 0, end = 0;  // of the block's text
  uint32_t row = 0, column = 0;
  enum class Align : uint8_t { left, centre, right } align = Align::left;
};

struct Block {
  enum class Kind : uint8_t { paragraph, heading, code, rule, table };

  Kind kind = Kind::paragraph;
  uint8_t level = 0;               // of a heading, 1 ... 6
  uint8_t indent = 0;              // lists it lies in
  uint8_t quotes = 0;              // block quotes it lies in
  std::string marker;              // of the list item that it begins: "•", "2."
  std::string language;            // of a code block, as written
  std::string text;                // UTF-8; a line break is '\n'
  std::vector<TextRun> runs;       // without gaps, in the order of the text
  std::vector<std::string> links;  // addresses
  std::vector<TableCell> cells;    // row by row; row 0 is the head
  uint32_t columns = 0;
  uint32_t source_begin = 0, source_end = 0;  // of all its runs

  /// Ranges of the text that stand for bytes of [from, to) of the source, in the order of the text.
  std::vector<std::pair<uint32_t, uint32_t>> shown_of(uint32_t from, uint32_t to) const;
  /// The byte of the source that a byte of the text stands for, its end for the end of the text.
  uint32_t source_of(uint32_t byte) const;
};

/// Parses a piece of Markdown that begins at byte `offset` of its source. HTML is text like any other.
std::vector<Block> parse_markdown(std::string_view text, uint32_t offset = 0);

/// The text as it is, in one paragraph: what a user wrote.
std::vector<Block> plain_block(std::string_view text);

/// The blocks of a text that grows: what is closed is parsed once, only the tail again.
class MarkdownText {
 public:
  /// `text` begins with the text of the last call, or is another one altogether (shorter, or after clear()).
  void update(std::string_view text);
  void clear() { *this = {}; }

  const std::vector<Block>& blocks() const { return blocks_; }
  /// These first blocks never change any more.
  size_t closed() const { return closed_blocks_; }

 private:
  std::vector<Block> blocks_;
  size_t closed_blocks_ = 0, closed_bytes_ = 0, bytes_ = 0;
};

/// Where the last block that may still change begins, at or after `from`, which is such a place itself: behind an empty
/// line outside fenced code, before a line that is not indented.
size_t open_tail(std::string_view text, size_t from);

}  // namespace canopy::app
