#pragma once
// The text of one message on the screen: its blocks laid out one below the other. Positions in it are bytes of the
// message's own text.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <imgui.h>

#include "app/chat/markdown.h"
#include "app/chat/rich_block.h"
#include "app/conversation/message.h"

namespace canopy::app {

class MessageBody {
 public:
  /// Free when nothing changed; where text was appended, only what is still open is laid out again.
  void layout(const Message& message, float width);

  float height() const { return height_; }
  float widest() const { return widest_; }

  void draw_surfaces(ImDrawList* list, ImVec2 pos) const;
  /// Returns where the text ends, at the top of its last line.
  ImVec2 draw_text(ImDrawList* list, ImVec2 pos) const;

  using Rects = std::function<void(ImVec2, ImVec2)>;
  /// Calls f(a, b) for what bytes [from, to) of the message cover, line by line.
  void rects(ImVec2 pos, size_t from, size_t to, const Rects& f) const;
  /// Bytes of the message whose blocks cross the heights top ... bottom.
  std::pair<size_t, size_t> visible(ImVec2 pos, float top, float bottom) const;

  /// The byte of the message nearest to a point, at a character's boundary.
  size_t byte_at(ImVec2 point, ImVec2 pos) const;
  /// The address of the link under a point; empty where there is none.
  std::string link_at(ImVec2 point, ImVec2 pos) const;

  /// The code blocks: f(text, upper right corner of its head, height of the head).
  void code_blocks(ImVec2 pos, const std::function<void(const std::string&, ImVec2, float)>& f) const;

  /// Characters that no font has.
  std::vector<uint32_t> missing() const;
  bool unshaped() const;

 private:
  size_t block_at(float y) const;

  MarkdownText markdown_;
  std::vector<Block> plain_;
  std::vector<RichBlock> laid_;
  std::vector<float> tops_;
  const std::vector<Block>& blocks() const { return is_plain_ ? plain_ : markdown_.blocks(); }
  bool is_plain_ = false;
  size_t bytes_ = 0;
  float width_ = -1, scale_ = 0, height_ = 0, widest_ = 0;
};

}  // namespace canopy::app
