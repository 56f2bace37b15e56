#pragma once
// The menus of the top bar's pickers.

#include <imgui.h>

#include <string>

#include "app/state/ui_command.h"
#include "app/state/view_model.h"

namespace canopy::app {

inline constexpr const char* kTargetMenu = "Target menu";
inline constexpr const char* kDrafterMenu = "Drafter menu";
inline constexpr const char* kDeviceMenu = "Device menu";

/// The menu that opens models: by the system's dialog, a path, the default model, recent ones and the Hugging Face
/// cache.
class TargetMenu {
 public:
  /// Draws the menu with its upper left corner at `corner`. folded: also offers what the bar has no room for. Returns
  /// the id of the menu to open next, or null.
  const char* draw(const ViewModel& view, CommandSink& sink, ImVec2 corner, bool folded);

 private:
  std::string path_;  // of the path box
};

/// Draws the drafters that were found; those that do not fit have the reason beside them.
void draw_drafter_menu(const ViewModel& view, CommandSink& sink, ImVec2 corner);
void draw_device_menu(const ViewModel& view, CommandSink& sink, ImVec2 corner);

}  // namespace canopy::app
