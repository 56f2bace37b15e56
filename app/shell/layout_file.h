#pragma once
// The file of the panels' layout, layout.json in the user's configuration folder. It contains text of Dear ImGui, which
// trusts what it reads; so that text is passed on only in the form in which Canopy wrote it.

#include <map>
#include <set>
#include <string>

#include "app/shell/dock_shape.h"

namespace canopy::app {

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

}  // namespace canopy::app
