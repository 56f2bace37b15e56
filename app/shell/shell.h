#pragma once
// Arranges the window: bars at the top and the bottom, docked panels between them or, while there is nothing to show
// yet, the start page.

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "app/charts/transport.h"
#include "app/chat/chat_files.h"
#include "app/shell/dock_space.h"
#include "app/shell/focus_areas.h"
#include "app/shell/screen_regions.h"
#include "app/shell/watch_layout.h"
#include "app/shell/what_if_layout.h"
#include "app/ui/actions.h"
#include "app/ui/dialogs.h"
#include "app/ui/panel.h"

namespace canopy::app {

/// A panel in the area between the bars, and its first place.
struct DockedPanel {
  std::unique_ptr<Panel> panel;
  DockPlace place;
};

class Shell {
 public:
  explicit Shell(const SavedLayout& saved);
  ~Shell();

  /// Call before ImGui::NewFrame(). scale: scale of the interface times that of the display.
  void prepare(const ViewModel& view, float scale);
  /// Draws the windows of a frame into the current ImGui context and posts the user's commands.
  void draw(const ViewModel& view, CommandSink& sink);

  /// The layout, if it has changed since the last call.
  std::optional<SavedLayout> layout_changed(const ViewModel& view);
  /// The present layout.
  SavedLayout layout(const ViewModel& view);

 private:
  /// Draws the browser for models and recordings, which takes the place of a file dialog where there is none.
  void draw_browser(const ViewModel& view, CommandSink& sink);
  void draw_docked(DockedPanel& docked, const ViewModel& view, CommandSink& sink);

  std::unique_ptr<Panel> top_bar_, status_bar_, start_, compare_, sweep_, models_;
  std::vector<DockedPanel> docked_;
  DockSpace docks_;
  WatchLayout watch_;
  WhatIfLayout what_if_;
  bool popup_ = false;  // a popup was open when the last frame ended
  CommandPalette palette_;
  ChatFilesDialog chat_files_;
  RecordBox record_box_;
  ReportBox report_box_;
  ShareBox share_box_;
  OwnDeviceBox own_device_box_;
  ServeBox serve_box_;
  EngineBox engine_box_;
  PathBrowser browser_;
  std::vector<ScreenRegion> regions_;  // of this frame
  FocusAreas focus_;
  int focus_moves_ = 0;
  std::set<std::string> closed_;        // as last saved
  std::set<std::string> shown_closed_;  // closed panels in the last frame
  uint32_t resets_ = 0, raises_ = 0, presses_ = 0;
  std::string raising_;  // name of the panel to bring to the front
};

}  // namespace canopy::app
