#pragma once

#include <imgui.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "app/chat/message_body.h"

namespace canopy::app {

/// The selected part of one message: dragging selects characters, a double click a word, a triple click a paragraph.
/// Positions are bytes of the message's text, its Markdown included; they stay valid while a message is being written,
/// as messages only grow at the end.
class TextSelection {
 public:
  /// What the mouse did in the message in this frame.
  struct Mouse {
    bool over = false;
    bool clicked = false;  // pressed and released at the same place, once
  };

  /// Makes the rectangle a ... b an item for the mouse, for the body drawn at pos. id is that of the message.
  Mouse item(uint64_t id, const MessageBody& body, ImVec2 a, ImVec2 b, ImVec2 pos, std::string_view text);
  /// Draws the background of the selected part. Call before drawing the text.
  void draw(uint64_t id, const MessageBody& body, ImVec2 pos, ImDrawList* list) const;

  bool empty() const { return begin() == end(); }
  void clear() { id_ = anchor_ = caret_ = 0; }
  uint64_t id() const { return id_; }
  /// The selected part of `text`, which must be that of message id().
  std::string of(std::string_view text) const;

 private:
  size_t begin() const { return anchor_ < caret_ ? anchor_ : caret_; }
  size_t end() const { return anchor_ < caret_ ? caret_ : anchor_; }
  void press(uint64_t id, size_t byte, std::string_view text, int clicks);

  uint64_t id_ = 0;
  size_t anchor_ = 0, caret_ = 0;  // bytes
  bool dragging_ = false;
};

}  // namespace canopy::app
