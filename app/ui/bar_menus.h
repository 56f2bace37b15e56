#pragma once
// What opens from the top bar: the menus of target, drafter and device, the View menu, and the memory bar with its
// table and the choice of the context.

#include <imgui.h>

#include <string>
#include <vector>

#include "app/state/view_model.h"

namespace canopy::app {

// The menus of the top bar's pickers.

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

/// Where guesses can come from, as menus name it.
inline constexpr const char* kSourcesHeading = "Guesses come from";
struct SourceRow {
  DraftSources source;
  const char *id, *title;
  const char* term;  // of app/state/words.h
};
inline constexpr SourceRow kFromDrafterRow = {kFromDflash, "From the drafter", "The drafter", "Drafter"};
inline constexpr SourceRow kFromTextRow = {kFromSuffix, "From the text", "The text itself", "Guesses from the text"};
inline constexpr SourceRow kEarlierRow = {kFromEarlier, "Earlier", "Earlier replies", "Earlier replies"};
inline constexpr SourceRow kRecycledRow = {kFromRecycling, "Recycled", "What the model nearly said",
                                           "Recycled guesses"};

/// Draws where guesses come from, and the drafters that were found; those that do not fit have the reason beside them.
void draw_drafter_menu(const ViewModel& view, CommandSink& sink, ImVec2 corner);
void draw_device_menu(const ViewModel& view, CommandSink& sink, ImVec2 corner);

inline constexpr const char* kViewMenu = "View menu";

/// Draws the View menu with its upper right corner at `corner`: panels by name, layout, scale, theme, motion, keys;
/// with `modes` also those of decoding, for which the bar has no room. It stays open while panels are switched on and
/// off. Open it with ImGui::OpenPopup(kViewMenu).
void draw_view_menu(const ViewModel& view, CommandSink& sink, const std::vector<std::string>& panels, ImVec2 corner,
                    bool modes);

/// Draws a bar of the device memory that the loaded models take, by parts. A click opens a table of it and the choice
/// of the context. 32 px high at 100%, at the cursor; without a width there is no bar, and its name alone opens it.
/// Draws nothing without a model.
void memory_bar(const ViewModel& view, CommandSink& sink, float width);

}  // namespace canopy::app
