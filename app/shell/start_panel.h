#pragma once
// The start page: the demo, ways to get a model, the progress of the first load, and the devices.

#include <imgui.h>

#include "app/ui/panel.h"

namespace canopy::app {

/// The start page: the demo, ways to get a model, the progress of the first load, and the devices.
class StartPanel final : public Panel {
 public:
  const char* name() const override { return "Start"; }
  /// Whether there is nothing else to show, so that the start page takes the place of the docked panels.
  static bool wanted(const ViewModel& view);
  void draw(const ViewModel& view, CommandSink& sink) override;

 private:
  void draw_cards(const ViewModel& view, CommandSink& sink, float width);
  void draw_demo_card(CommandSink& sink, ImVec2 pos, ImVec2 size);
  void draw_open_card(const ViewModel& view, CommandSink& sink, ImVec2 pos, ImVec2 size);
  void draw_chat_card(const ViewModel& view, CommandSink& sink, ImVec2 pos, ImVec2 size);
};

}  // namespace canopy::app
