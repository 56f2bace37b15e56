#pragma once
// A block of Markdown laid out for the screen: words in several faces, wrapped. Positions are kept per byte, so that
// marking a token, a selection or a search hit costs a lookup.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <imgui.h>

#include "app/chat/markdown.h"
#include "app/look/fonts.h"

namespace canopy::app {

class RichBlock {
 public:
  /// Lays a block out at `width` pixels. Call again when block, width or scale changed.
  void layout(const Block& block, float width);

  float height() const { return height_; }
  float widest() const { return widest_; }
  /// Room above this block when another one is before it.
  float gap() const { return gap_; }

  /// Surfaces: the card of code, bars of quotes, rules of tables. pos is the upper left corner, here and below.
  void draw_surfaces(ImDrawList* list, ImVec2 pos, const Block& block) const;
  /// The words that cross the clip rectangle. Returns where the text ends, at the top of its last line.
  ImVec2 draw_text(ImDrawList* list, ImVec2 pos, const Block& block) const;

  /// Calls f(a, b) with the corners of what bytes [begin, end) of the text cover, line by line.
  void rects(ImVec2 pos, uint32_t begin, uint32_t end, const std::function<void(ImVec2, ImVec2)>& f) const;

  /// The byte of the text nearest to a point, at a character's boundary.
  uint32_t byte_at(ImVec2 point, ImVec2 pos, const Block& block) const;
  /// The link under a point; TextRun::no_link where there is none.
  uint16_t link_at(ImVec2 point, ImVec2 pos, const Block& block) const;

  /// Characters that no font has, each once, at most a few.
  const std::vector<uint32_t>& missing() const { return missing_; }

  /// Whether it has letters that would have to be joined or turned around, which nothing here does.
  bool unshaped() const { return unshaped_; }

  /// The height of the line above code, with its language and the Copy button; 0 elsewhere.
  float head() const { return top_; }

 private:
  enum class Face : uint8_t { regular, strong, mono, title };
  struct Line {
    uint32_t begin, end;  // bytes
    float x, y, width;    // from the block's corner
  };
  struct Piece {  // of a line, in one face
    uint32_t begin, end;
    uint32_t line;
    Face face;
    uint8_t style;
    uint16_t link;
  };
  static Type type_of(Face face);
  Face face_for(const Block& block, uint8_t style) const;
  void measure(const Block& block);
  void wrap(const Block& block, uint32_t begin, uint32_t end, float x, float width, float& y);
  void add_line(uint32_t begin, uint32_t end, float x, float y);
  void layout_table(const Block& block, float left, float width);
  void cut_pieces();
  float x_of(const Line& line, uint32_t byte) const { return byte >= line.end ? line.width : at_[byte]; }
  float advance(uint32_t begin, uint32_t end) const;

  std::vector<Line> lines_;
  std::vector<Piece> pieces_;
  std::vector<Piece> faces_;    // before wrapping
  std::vector<float> advance_;  // by byte, 0 inside a character
  std::vector<float> at_;       // by byte, from its line's beginning
  std::vector<float> rules_;    // y of the lines of a table
  std::vector<uint32_t> missing_;
  float height_ = 0, widest_ = 0, gap_ = 0, left_ = 0, top_ = 0, pitch_ = 0, width_ = 0;
  bool unshaped_ = false;
};

}  // namespace canopy::app
