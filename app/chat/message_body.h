#pragma once
// The laid out text of one message: its blocks of Markdown, in several faces and wrapped, below each other. Positions
// are bytes of the message's text.

#include <imgui.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/chat/code_colours.h"
#include "app/chat/markdown.h"
#include "app/chat/maths.h"
#include "app/platform/text_order.h"
#include "app/state/conversation.h"
#include "app/ui/look.h"

namespace canopy::app {

// The layout of a block of Markdown: words in several faces, wrapped. It has the position of each byte, so that marking
// a token, a selection or a search hit needs only a look-up. Lines are wrapped as the text is stored, and each is then
// put in the order in which it is read (app/platform/text_order.h). What must not be wrapped and is too wide (code,
// tables, formulas) is scrolled sideways. A typeset formula has its letters where the bytes of its source are: spread
// evenly.

class RichBlock {
 public:
  /// Lays a block out at `width` pixels. Call again when block, width or scale have changed. A paragraph from right to
  /// left ends at the right, or with `hug` where its widest line does.
  void layout(const Block& block, float width, bool hug = false);

  float height() const { return height_; }
  float widest() const { return widest_; }
  /// Space above this block if another one is before it, in pixels.
  float gap() const { return gap_; }

  /// Makes what is too wide scroll: by its bar, by the wheel with Shift or sideways, or by keys (Look::wide_steps).
  void scroll_sideways(ImVec2 pos);
  /// Scrolls so that bytes [begin, end) of the text can be seen.
  void reveal(uint32_t begin, uint32_t end);

  /// Draws backgrounds: cards of code, bars of quotes, lines of tables. pos is the block's upper left corner, here and
  /// below.
  void draw_surfaces(ImDrawList* list, ImVec2 pos, const Block& block) const;
  /// Draws the words inside the clip rectangle. Returns the end of the text, at the top of its last line.
  ImVec2 draw_text(ImDrawList* list, ImVec2 pos, const Block& block) const;

  /// Calls f(a, b) with the corners of each rectangle that bytes [begin, end) of the text cover, line by line.
  void rects(ImVec2 pos, uint32_t begin, uint32_t end, const std::function<void(ImVec2, ImVec2)>& f) const;

  /// The byte of the text nearest to a point, on a character boundary.
  uint32_t byte_at(ImVec2 point, ImVec2 pos, const Block& block) const;
  /// Index of the link at a point; TextRun::no_link if there is none.
  uint16_t link_at(ImVec2 point, ImVec2 pos, const Block& block) const;

  /// Characters that are in none of the fonts, each once, only the first few.
  const std::vector<uint32_t>& missing() const { return missing_; }

  /// Height of the line above code with language and Copy button, in pixels; 0 for other blocks.
  float head() const { return top_; }

 private:
  enum class Face : uint8_t { regular, strong, mono, title, note };
  struct Line {
    uint32_t begin, end;          // bytes of the text
    float x, y, width;            // relative to the block's corner
    float height = 0, above = 0;  // above: what a formula adds over the letters
  };
  struct Piece {  // part of a line in one face
    uint32_t begin, end;
    uint32_t line;
    Face face;
    uint8_t style;
    uint16_t link;
    CodeKind kind = CodeKind::plain;
    uint32_t formula = 0;    // its number in formulas_, from 1; 0: none
    float x = 0, end_x = 0;  // from the beginning of the line
    bool rtl = false;
  };
  struct Formula {
    uint32_t begin, end;
    std::shared_ptr<const Maths> maths;
    float em;  // in pixels
  };
  struct Span {  // part of a line that is read in one direction, from left to right
    uint32_t line;
    uint32_t begin, end;
    bool rtl;
    float x, end_x;  // from the beginning of the line
  };
  static Type type_of(Face face);
  Face face_for(const Block& block, uint8_t style) const;
  void measure(const Block& block, float room);
  bool measure_formula(const Block& block, const TextRun& run, float room);
  void measure_words(const Block& block, const TextRun& run);
  void grow_for_formulas(Line& line) const;
  float widest_formula(uint32_t begin, uint32_t end) const;
  void wrap(const Block& block, uint32_t begin, uint32_t end, float x, float width, float& y);
  void add_line(uint32_t begin, uint32_t end, float x, float y);
  void layout_table(const Block& block, float left, float width);
  void cut_pieces();
  void measure_order(const Block& block);
  void order_line(const Block& block);
  void align_paragraphs(const Block& block, float right);
  std::vector<Span> spans_of(const Line& line, uint32_t begin, uint32_t end) const;
  float end_of(const Line& line) const;
  float x_of(const Line& line, uint32_t byte) const { return byte >= line.end ? line.width : at_[byte]; }
  float advance(uint32_t begin, uint32_t end) const;
  void place_in_view(float from, float to);
  /// Where a line begins, as it is scrolled.
  float left_of(const Line& line) const { return line.x - scroll_; }
  bool scrolls() const { return hidden_ > 0; }
  struct ScrollBar {
    ImVec2 a, b;          // of its track
    float thumb, length;  // of the part that is dragged
  };
  ScrollBar scroll_bar(ImVec2 pos) const;

  std::vector<Line> lines_;
  std::vector<Piece> pieces_;
  std::vector<Piece> faces_;    // before wrapping
  std::vector<float> advance_;  // by byte, 0 inside a character
  std::vector<float> at_;       // by byte, distance of its first edge, as it is read, from the beginning of its line
  std::vector<float> rules_;    // y of the horizontal lines of a table
  std::vector<uint32_t> missing_;
  TextOrder order_;
  std::vector<Span> spans_;  // of the lines that hold words from right to left, by line
  std::vector<Formula> formulas_;
  CodeColours code_;
  float view_from_ = 0, view_to_ = 0;  // of what scrolls: where it can be seen
  float hidden_ = 0, scroll_ = 0;      // how much wider it is than that, and how far it is scrolled
  float height_ = 0, widest_ = 0, gap_ = 0, left_ = 0, top_ = 0, pitch_ = 0, width_ = 0;
  bool rtl_ = false;  // its paragraphs run from right to left
};

class MessageBody {
 public:
  /// Lays the message out at `width` pixels. Free when nothing changed; after text was appended, only blocks that may
  /// still change are laid out again.
  /// Of a reply only the answer, without the thinking in front of it.
  void layout(const Message& message, float width);
  /// Lays out what a reply thought, as it was written.
  void layout_thinking(const Message& message, float width);

  /// Whether nothing is shown: no text has come yet.
  bool empty() const { return bytes_ == 0; }

  float height() const { return height_; }
  float widest() const { return widest_; }

  /// Draws what lies behind the text, with the bars of what scrolls sideways, which take the mouse.
  void draw_surfaces(ImDrawList* list, ImVec2 pos);
  /// Draws the text. Returns its end, at the top of the last line.
  ImVec2 draw_text(ImDrawList* list, ImVec2 pos) const;
  /// Scrolls code, tables and formulas sideways so that bytes [from, to) of the message can be seen.
  void reveal(size_t from, size_t to);

  using Rects = std::function<void(ImVec2, ImVec2)>;
  /// Calls f(a, b) with the corners of each rectangle that bytes [from, to) of the message cover, line by line.
  void rects(ImVec2 pos, size_t from, size_t to, const Rects& f) const;
  /// The range of bytes whose blocks are at least partly between the heights top and bottom.
  std::pair<size_t, size_t> visible(ImVec2 pos, float top, float bottom) const;

  /// The byte of the message nearest to a point, on a character boundary.
  size_t byte_at(ImVec2 point, ImVec2 pos) const;
  /// The address of the link at a point; empty if there is none.
  std::string link_at(ImVec2 point, ImVec2 pos) const;

  /// Calls f(text, upper right corner of its head line, height of that line) for each code block.
  void code_blocks(ImVec2 pos, const std::function<void(const std::string&, ImVec2, float)>& f) const;

  /// Characters that are in none of the fonts.
  std::vector<uint32_t> missing() const;

 private:
  void layout(std::string_view text, size_t first, bool plain, bool growing, float width);
  size_t block_at(float y) const;

  MarkdownText markdown_;
  std::vector<Block> plain_;
  std::vector<RichBlock> laid_;
  std::vector<float> tops_;
  const std::vector<Block>& blocks() const { return is_plain_ ? plain_ : markdown_.blocks(); }
  bool is_plain_ = false, growing_ = false;
  size_t first_ = 0, bytes_ = 0;  // of the message's text: where the shown part begins, and its size
  float width_ = -1, scale_ = 0, height_ = 0, widest_ = 0;
};

}  // namespace canopy::app
