#pragma once
// Arranges the window: bars at the top and the bottom, panels docked between them, and before there is anything to show
// the start page in their place.

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "app/chat/chat_files_dialog.h"
#include "app/panels/panel.h"
#include "app/shell/command_palette.h"
#include "app/shell/dock_space.h"
#include "app/timeline/record_box.h"

namespace canopy::app {

/// A panel that shares the area between the bars, and where it lies at first.
struct DockedPanel {
  std::unique_ptr<Panel> panel;
  DockPlace place;
};

class Shell {
 public:
  explicit Shell(const SavedLayout& saved);
  ~Shell();

  /// Call before ImGui::NewFrame(), with the interface's scale times the display's.
  void prepare(const ViewModel& view, float scale);
  /// Draws one frame's windows into the current ImGui context and posts what the user asked for.
  void draw(const ViewModel& view, CommandSink& sink);

  /// The layout, when something in it changed since the last call.
  std::optional<SavedLayout> layout_changed(const ViewModel& view);
  /// The layout as it is.
  SavedLayout layout(const ViewModel& view);

 private:
  void draw_docked(DockedPanel& docked, const ViewModel& view, CommandSink& sink);

  std::unique_ptr<Panel> top_bar_, status_bar_, start_;
  std::vector<DockedPanel> docked_;
  DockSpace docks_;
  bool popup_ = false;  // one was open when the last frame ended
  CommandPalette palette_;
  ChatFilesDialog chat_files_;
  RecordBox record_box_;
  std::set<std::string> closed_;        // as last saved
  std::set<std::string> shown_closed_;  // in the last frame
  uint32_t resets_ = 0, raises_ = 0;
  std::string raising_;  // the panel that is to come to the front
};

}  // namespace canopy::app
