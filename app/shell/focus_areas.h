#pragma once
// The parts of the window that the keyboard goes through with Ctrl+F6: the list of chats, the chat, the box of
// messages, the tree, the timeline, the numbers, other panels, and the bar at the top.

#include <string>
#include <string_view>
#include <vector>

#include "app/shell/screen_regions.h"

namespace canopy::app {

/// Names of parts as in app/state/words.h, in the order in which the keyboard goes through them. drawn: the parts of
/// this frame.
std::vector<std::string> focus_order(const std::vector<ScreenRegion>& drawn);

class FocusAreas {
 public:
  /// Gives the keyboard to the next part (by 1) or the one before (-1), and says for a moment which it is.
  void move(int by, const std::vector<ScreenRegion>& drawn);
  /// Draws the frame and the name of the part that was reached last, while they are to be seen.
  void draw(const std::vector<ScreenRegion>& drawn) const;

 private:
  std::string now_;
  double until_ = -1;
};

}  // namespace canopy::app
