#pragma once
// The area between the bars, where panels lie side by side and in tabs. It uses Dear ImGui's docking and adds first
// places, lengths that follow window and scale, and saved arrangements.

#include <imgui.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "app/shell/dock_shape.h"
#include "app/shell/layout_file.h"

struct ImGuiDockNode;

namespace canopy::app {

/// The window of a panel by its name, and its first place.
struct DockedWindow {
  const char* name;
  DockPlace place;
};

/// Sets the style of tabs until destroyed. It must be active for the area and for every docked window's Begin().
class TabStyle {
 public:
  TabStyle();
  ~TabStyle();
  TabStyle(const TabStyle&) = delete;
  TabStyle& operator=(const TabStyle&) = delete;
};

class DockSpace {
 public:
  /// windows: of those that share a place, the first is in front.
  DockSpace(std::vector<DockedWindow> windows, const SavedLayout& saved) : windows_(windows), docks_(saved.docks) {}

  /// Call between frames: sets up the arrangement for this room, in pixels. Does nothing before the display has a size.
  void prepare(ImVec2 room, float scale);
  /// Forgets every arrangement; the next prepare() builds the default one.
  void reset();
  /// Call before a window that was closed is shown again. Dear ImGui forgets a place whose last window was closed; then
  /// this builds the default places again, with the present lengths.
  void restore(const char* name);
  /// Whether the panels have places already.
  bool ready() const { return shape_.has_value(); }

  /// Draws the area. shown: false keeps the places while the panels are not drawn.
  void draw(ImVec2 pos, ImVec2 size, float scale, bool shown);

  /// The dock node for a window that has no place yet.
  ImGuiID place_of(const char* name) const;

  /// The arrangements, if they have changed and the user is not dragging any more; else nullopt.
  std::optional<std::map<DockShape, DockArrangement>> changed();
  /// The arrangements, whether they have changed or not.
  std::map<DockShape, DockArrangement> now();

 private:
  void build(ImVec2 size);
  void fit(ImGuiDockNode* node, ImVec2 size, float scale);
  void learn(ImGuiDockNode* node, float scale);

  struct Side {
    float wish;     // chosen by the user, at 100%
    float applied;  // pixels, as last set
    std::optional<DockPlace> place;
  };

  std::vector<DockedWindow> windows_;
  std::map<DockShape, DockArrangement> docks_;
  std::optional<DockShape> shape_;
  bool strip_ = false;  // the timeline is a strip
  bool build_ = false;
  ImVec2 size_{0, 0};
  float scale_ = 1;
  std::map<ImGuiID, Side> sides_;  // by node: the lengths of side panels
  // Of shapes that were left: what ini text does not tell. Their lengths may have been cut to a small window.
  struct Left {
    bool strip = false;
    std::map<ImGuiID, Side> sides;
  };
  std::map<DockShape, Left> left_;
  std::map<DockPlace, float> lengths_;  // at 100%, of places whose border the user has dragged
};

}  // namespace canopy::app
