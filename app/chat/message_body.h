#pragma once
// The laid out text of one message: its blocks below each other. Positions are bytes of the message's text.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <imgui.h>

#include "app/chat/markdown.h"
#include "app/chat/rich_block.h"
#include "app/conversation/message.h"

namespace canopy::app {

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

  void draw_surfaces(ImDrawList* list, ImVec2 pos) const;
  /// Draws the text. Returns its end, at the top of the last line.
  ImVec2 draw_text(ImDrawList* list, ImVec2 pos) const;

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
  bool unshaped() const;

 private:
  void layout(std::string_view text, size_t first, bool plain, float width);
  size_t block_at(float y) const;

  MarkdownText markdown_;
  std::vector<Block> plain_;
  std::vector<RichBlock> laid_;
  std::vector<float> tops_;
  const std::vector<Block>& blocks() const { return is_plain_ ? plain_ : markdown_.blocks(); }
  bool is_plain_ = false;
  size_t first_ = 0, bytes_ = 0;  // of the message's text: where the shown part begins, and its size
  float width_ = -1, scale_ = 0, height_ = 0, widest_ = 0;
};

}  // namespace canopy::app
