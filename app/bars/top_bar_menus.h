#pragma once
// The pop-up lists of the top bar's pickers.

#include <imgui.h>

#include <string>

#include "app/state/ui_command.h"
#include "app/state/view_model.h"

namespace canopy::app {

inline constexpr const char* kTargetMenu = "Target menu";
inline constexpr const char* kDrafterMenu = "Drafter menu";
inline constexpr const char* kDeviceMenu = "Device menu";

/// Opens models: the system's dialog, a path, the default model, recent ones and the cache of Hugging Face.
class TargetMenu {
 public:
  /// Its upper left corner goes to corner. folded: what the bar has no room for is offered here; returns the menu to
  /// open next, or null.
  const char* draw(const ViewModel& view, CommandSink& sink, ImVec2 corner, bool folded);

 private:
  std::string path_;  // of the path box
};

/// The drafters that were found, each with the reason where it does not fit.
void draw_drafter_menu(const ViewModel& view, CommandSink& sink, ImVec2 corner);
void draw_device_menu(const ViewModel& view, CommandSink& sink, ImVec2 corner);

}  // namespace canopy::app
