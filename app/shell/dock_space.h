#pragma once
// The area between the bars, where panels lie side by side and in tabs: Dear ImGui's docking, with first places, with
// sizes that follow the window and the interface scale, and with a memory.

#include <imgui.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "app/shell/dock_shape.h"
#include "app/shell/layout_file.h"

struct ImGuiDockNode;

namespace canopy::app {

/// A panel's window by its name, and where it lies at first.
struct DockedWindow {
  const char* name;
  DockPlace place;
};

/// The measures of tabs, for as long as it lives. The area and every docked window's Begin() must agree on them.
class TabStyle {
 public:
  TabStyle();
  ~TabStyle();
  TabStyle(const TabStyle&) = delete;
  TabStyle& operator=(const TabStyle&) = delete;
};

class DockSpace {
 public:
  /// In tabs of one place the first window of the list is in front.
  DockSpace(std::vector<DockedWindow> windows, const SavedLayout& saved) : windows_(windows), docks_(saved.docks) {}

  /// Call between frames: puts the arrangement for this room in place. Does nothing before the display has a size.
  void prepare(ImVec2 room, float scale);
  /// Forgets every arrangement; the next prepare() builds the usual one.
  void reset();
  /// A window that was closed is about to be shown again: Dear ImGui forgets a place that lost its last window, so the
  /// usual places are built anew, with the lengths there are, where it must be.
  void restore(const char* name);
  /// Whether the panels have places yet.
  bool ready() const { return shape_.has_value(); }

  /// Submits the area. shown: whether panels follow; else their places are only kept.
  void draw(ImVec2 pos, ImVec2 size, float scale, bool shown);

  /// Where a window without a place of its own goes.
  ImGuiID place_of(const char* name) const;

  /// The arrangements as they are now, or nothing as long as nobody moves anything.
  std::optional<std::map<DockShape, DockArrangement>> changed();
  /// The same, whether or not something moved.
  std::map<DockShape, DockArrangement> now();

 private:
  void build(ImVec2 size);
  void fit(ImGuiDockNode* node, ImVec2 size, float scale);
  void learn(ImGuiDockNode* node, float scale);

  struct Side {
    float wish;     // of its user, at 100%
    float applied;  // pixels it was given
    std::optional<DockPlace> place;
  };

  std::vector<DockedWindow> windows_;
  std::map<DockShape, DockArrangement> docks_;
  std::optional<DockShape> shape_;
  bool strip_ = false;  // of the timeline
  bool build_ = false;
  ImVec2 size_{0, 0};
  float scale_ = 1;
  std::map<ImGuiID, Side> sides_;       // nodes beside the central one
  std::map<DockPlace, float> lengths_;  // that were dragged, at 100%
};

}  // namespace canopy::app
