#pragma once

#include <imgui.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "app/chat/message_body.h"

namespace canopy::app {

/// The part of one message that the mouse has selected: drag for characters, click twice for a word, three times for
/// a paragraph. Positions are bytes of the message's own text, its Markdown included; messages only grow at their end,
/// so they stay valid while one is being written.
class TextSelection {
 public:
  /// What the mouse does to the message.
  struct Mouse {
    bool over = false;
    bool clicked = false;  // pressed and released in one place, once
  };

  /// Makes the body drawn at pos the item of the mouse in the rectangle a ... b. id is the message's.
  Mouse item(uint64_t id, const MessageBody& body, ImVec2 a, ImVec2 b, ImVec2 pos, std::string_view text);
  /// Draws the background of the selected part. Call before drawing the text.
  void draw(uint64_t id, const MessageBody& body, ImVec2 pos, ImDrawList* list) const;

  bool empty() const { return begin() == end(); }
  void clear() { id_ = anchor_ = caret_ = 0; }
  uint64_t id() const { return id_; }
  /// The selected part of the text of message id().
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
