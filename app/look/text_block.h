#pragma once
// A wrapped paragraph with its own line pitch. Appended text costs only the layout of the last line, so that a long
// reply that is being written does not cost more in every frame.

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "app/look/fonts.h"

namespace canopy::app {

class TextBlock {
 public:
  /// Wraps text at `width` pixels. Cheap when text was only appended since the last call, free when nothing changed.
  void layout(std::string_view text, Type type, float width);

  /// Height in pixels for a line pitch in pixels.
  float height(float pitch) const { return pitch * static_cast<float>(lines_.size()); }
  size_t line_count() const { return lines_.size(); }
  float widest() const { return widest_; }

  /// The byte of the text nearest to a point, on a character boundary. pos is where the block was drawn.
  size_t byte_at(ImVec2 point, ImVec2 pos, std::string_view text, Type type, float pitch) const;

  /// Fills the background of the bytes [begin, end). Call before drawing the text.
  void draw_behind(ImDrawList* list, ImVec2 pos, std::string_view text, Type type, size_t begin, size_t end,
                   Colour colour, float pitch) const;

  /// Draws the lines that are inside the clip rectangle. Returns the end of the text, at the top of its last line.
  ImVec2 draw(ImDrawList* list, ImVec2 pos, std::string_view text, Type type, Colour colour, float pitch) const;

 private:
  struct Line {
    uint32_t begin, end;  // bytes of the text
  };
  void wrap_from(std::string_view text, size_t start, Type type);

  std::vector<Line> lines_;
  size_t laid_out_ = 0;  // bytes
  float width_ = -1, size_ = 0, widest_ = 0;
};

}  // namespace canopy::app
