#pragma once
// Where the parts of Watch lie (look/watch.md, "Layout" and "Sizes"). Pure arithmetic in units of the 100% design, so
// that it is tested without a window.

namespace canopy::app {

struct WatchRect {
  float x = 0, y = 0, width = 0, height = 0;
  bool shown() const { return width > 0 && height > 0; }
};

/// Parts without room are not shown.
struct WatchPlaces {
  WatchRect chat, numbers, caption, tree, legend, budget, strip;
  bool chat_below = false;  // under the tree, in place of beside it
  bool subtitles = true;    // the numbers have a second line
};

/// The places in a window of this size. bar: height of the bar at the top, which lies above all of them; y counts from
/// the top of the window. The chat is shown at every size. Beside it the tree gets at least 60% of the window's height;
/// in windows too narrow for that the chat lies below the tree, or alone where there is no room for both. tour: its
/// card is shown, for which such windows give up the chat.
WatchPlaces watch_places(float width, float height, float bar, bool tour = false);

}  // namespace canopy::app
