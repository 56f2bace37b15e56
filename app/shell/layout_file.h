#pragma once
// Where the panels lie, from one start to the next: layout.json of the user's configuration folder. The arrangement
// itself is Dear ImGui's text; it is passed on only as Canopy wrote it, since Dear ImGui trusts what it reads.

#include <map>
#include <set>
#include <string>

#include "app/shell/dock_shape.h"

namespace canopy::app {

struct DockArrangement {
  std::string ini;     // of Dear ImGui
  float scale = 1.0f;  // its lengths are pixels at this interface scale
  bool operator==(const DockArrangement&) const = default;
};

struct SavedLayout {
  std::map<DockShape, DockArrangement> docks;
  std::set<std::string> closed;  // panels
  bool operator==(const SavedLayout&) const = default;
};

struct LayoutRead {
  SavedLayout layout;
  std::string note;  // why the file was ignored; empty when all is well or there is none
};

/// Reads the file. Never fails: whatever is wrong with it becomes the note, and the usual layout stands in.
LayoutRead read_layout(const std::string& path);

/// Replaces the file, or leaves the old one untouched. Throws Error (bad_input) naming path and reason.
void write_layout(const std::string& path, const SavedLayout& layout);

/// The layout's file beside the settings'; empty where those are not kept either.
std::string layout_path_beside(const std::string& settings_path);

}  // namespace canopy::app
