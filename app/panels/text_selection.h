#pragma once

#include <imgui.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "app/look/text_block.h"

namespace canopy::app {

/// The part of one message that the mouse has selected: drag for characters, click twice for a word, three times for
/// a paragraph. Messages only grow at their end, so byte positions stay valid while one is being written.
class TextSelection {
 public:
  /// Makes the block drawn at pos the item of the mouse in the rectangle a ... b, and draws the selected part's
  /// background. Call before drawing the text. id is the message's.
  void item(uint64_t id, const TextBlock& block, ImVec2 a, ImVec2 b, ImVec2 pos, std::string_view text, Type type,
            float pitch);

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
