#pragma once
// The area between the bars, where panels lie side by side and in tabs: which share a place by the room there is,
// lengths that follow window and scale, and the file in which the user's layout is kept.

#include <imgui.h>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

struct ImGuiDockNode;

namespace canopy::app {

// Rules for the room that docked panels get. Pure arithmetic in units of the 100% design, so that it is tested without
// a window.

/// Which panels share a place, by the room in units of the design: on a projector at 300% a window is small, however
/// many pixels it has.
enum class DockShape {
  wide,    // chat | tree over budget | statistics, and the timeline below
  medium,  // chat | everything else in tabs
  narrow,  // everything in tabs
};

/// Places of the wide shape; in the other shapes several of them are one.
enum class DockPlace { left, centre, below, right, bottom };

inline constexpr float kChatWidth = 364;
inline constexpr float kStatisticsWidth = 360;
inline constexpr float kBudgetHeight = 286;
inline constexpr float kTimelineHeight = 106;

DockShape dock_shape(float width, float height);

/// Whether the timeline is a strip at the bottom; otherwise it is a tab.
bool has_timeline_strip(float height);

/// The length of a side panel: the wished one, limited so that its neighbours keep the larger part of the room.
float fitted_length(float wish, float room);

/// "wide", "medium" or "narrow", as written in the layout file.
std::string_view to_string(DockShape shape);

// The file of the panels' layout, layout.json in the user's configuration folder. It contains text of Dear ImGui, which
// trusts what it reads; so that text is passed on only in the form in which Canopy wrote it.

struct DockArrangement {
  std::string ini;     // layout as text of Dear ImGui
  float scale = 1.0f;  // the interface scale at which the lengths in `ini` are pixels
  bool operator==(const DockArrangement&) const = default;
};

struct SavedLayout {
  std::map<DockShape, DockArrangement> docks;
  std::set<std::string> closed;  // names of closed panels
  bool operator==(const SavedLayout&) const = default;
};

struct LayoutRead {
  SavedLayout layout;
  std::string note;  // why the file was ignored; empty when all is well or there is no file
};

/// Reads the file. Never throws: an error goes into `note`, and the default layout is used.
LayoutRead read_layout(const std::string& path);

/// Replaces the file. On failure the old file stays as it was. Throws Error (bad_input) naming path and reason.
void write_layout(const std::string& path, const SavedLayout& layout);

/// The path of the layout file, in the folder of the settings file; empty where that path is empty.
std::string layout_path_beside(const std::string& settings_path);

// The area itself. It uses Dear ImGui's docking and adds first places, lengths that follow window and scale, and saved
// arrangements.

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
