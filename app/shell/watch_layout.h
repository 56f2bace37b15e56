#pragma once
// Watch: the tree as large as possible, and around it only what a newcomer needs: where the parts lie, the numbers,
// and the line about the budget.

#include <imgui.h>

#include <string>
#include <vector>

#include "app/charts/budget_panel.h"
#include "app/charts/timeline_panel.h"
#include "app/charts/watch_numbers_view.h"
#include "app/chat/chat_list.h"
#include "app/chat/chat_panel.h"
#include "app/shell/screen_regions.h"
#include "app/shell/tour.h"
#include "app/state/view_model.h"
#include "app/tree/tree_panel.h"

namespace canopy::app {

// Where the parts of Watch lie. Pure arithmetic in units of the 100% design, so that it is tested without a window.

struct WatchRect {
  float x = 0, y = 0, width = 0, height = 0;
  bool shown() const { return width > 0 && height > 0; }
};

/// Parts without room are not shown.
struct WatchPlaces {
  WatchRect list;  // of chats
  WatchRect edge;  // between chat and tree where they are beside each other
  WatchRect chat, numbers, caption, tree, legend, budget, strip;
  bool subtitles = true;  // the numbers have a second line
};

/// What the user chose about the left side.
struct WatchSides {
  bool list = false;  // the list of chats is shown, where the window has room for it beside the chat
  float chat = 0;     // width of the chat; 0: the usual one
};

/// The places in a window of this size. bar: height of the bar at the top, which lies above all of them; y counts from
/// the top of the window. The chat is shown at every size. Beside it the tree gets at least 60% of the window's height;
/// in windows too narrow for that the chat lies below the tree, or alone where there is no room for both. tour: its
/// card is shown, for which such windows give up the chat.
WatchPlaces watch_places(float width, float height, float bar, bool tour = false, const WatchSides& sides = {});

/// Draws tokens per pass, what a pass costs, the switch between plain decoding and guessing, and the chip "as if on
/// ...", as far as there is room: the chip, a prediction, goes first, then the switch, and the measured price last.
/// Each says on hover how it is computed. The menu of the chip chooses its device. subtitles: draw the second lines.
void draw_watch_numbers(const ViewModel& view, const WatchNumbers& numbers, ImVec2 pos, ImVec2 size, bool subtitles,
                        CommandSink& sink);

/// Draws the line about the size of the tree with its curve. True when its button was pressed. unfolded: the whole
/// chart is shown. game: where it is on, its question stands there until it is answered.
bool draw_budget_line(const BudgetLine& line, ImVec2 pos, ImVec2 size, bool unfolded, WidthGame& game);

class WatchLayout {
 public:
  /// Draws the windows of all parts below the bar, which is `bar` pixels high, into the viewport, and adds the parts to
  /// `regions`.
  void draw(const ViewModel& view, CommandSink& sink, float bar, std::vector<ScreenRegion>& regions);

 private:
  void draw_list(const ViewModel& view, CommandSink& sink, const WatchRect& place, float bar);
  void draw_edge(const ViewModel& view, CommandSink& sink, const WatchPlaces& at);
  void draw_numbers(const ViewModel& view, CommandSink& sink, const WatchTree::Parts& parts, bool with_chart);
  float unfolded_height(float tree) const;
  void draw_tour(const ViewModel& view, CommandSink& sink, TourPlaces places);
  TourFacts tour_facts() const;
  void draw_unfolded(const ViewModel& view, CommandSink& sink, ImVec2 pos, ImVec2 size);

  ChatList list_;
  bool listed_ = false, drawer_ = false;  // in the last frame the list was on show, and was over the chat
  float grabbed_ = 0;                     // pixels from the edge of the chat to the mouse that drags it
  ChatPanel chat_;
  WatchTree tree_;
  WatchStrip strip_;
  WatchSource source_;
  WidthGame game_;
  BudgetPanel budget_;  // below the tree while it is unfolded
  bool unfolded_ = false;
  TourOverlay tour_;
  double unfolded_at_ = -1;  // in ImGui::GetTime(): when it began to slide
};

}  // namespace canopy::app
