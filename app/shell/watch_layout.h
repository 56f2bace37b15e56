#pragma once
// Watch: the tree as large as possible, and around it only what a newcomer needs (look/watch.md).

#include <string>

#include <vector>

#include "app/charts/budget_panel.h"
#include "app/chat/chat_panel.h"
#include "app/shell/screen_regions.h"
#include "app/shell/tour_overlay.h"
#include "app/shell/watch_numbers.h"
#include "app/shell/watch_places.h"
#include "app/timeline/watch_strip.h"
#include "app/tree/watch_tree.h"

namespace canopy::app {

class WatchLayout {
 public:
  /// Draws the windows of all parts below the bar, which is `bar` pixels high, into the viewport, and adds the parts to
  /// `regions`.
  void draw(const ViewModel& view, CommandSink& sink, float bar, std::vector<ScreenRegion>& regions);

 private:
  void draw_numbers(const ViewModel& view, CommandSink& sink, const WatchTree::Parts& parts);
  void draw_tour(const ViewModel& view, CommandSink& sink, TourPlaces places);
  TourFacts tour_facts() const;
  void draw_unfolded(const ViewModel& view, CommandSink& sink, ImVec2 pos, ImVec2 size);

  ChatPanel chat_;
  WatchTree tree_;
  WatchStrip strip_;
  WatchSource source_;
  WidthGame game_;
  BudgetPanel budget_;  // over the tree while it is unfolded
  bool unfolded_ = false;
  TourOverlay tour_;
  double unfolded_at_ = -1;  // in ImGui::GetTime(): when it began to slide
};

}  // namespace canopy::app
