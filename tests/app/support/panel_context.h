#pragma once
// One panel alone in a window, with the look of the application. Commands about rounds are applied as in the
// application; everything that the panel posts is kept for the test.

#include <memory>
#include <vector>

#include "app/platform/imgui_context.h"
#include "app/ui/look.h"
#include "app/ui/panel.h"

namespace canopy::test {

class PanelContext {
 public:
  PanelContext(app::Panel& panel, float width, float height, app::ThemeKind theme = app::ThemeKind::dark,
               float scale = 1);

  app::ViewModel view;
  std::vector<app::UiCommand> posted;

  /// Call between ImGui::NewFrame() and ImGui::Render(); then call fold().
  void draw();
  void fold();
  app::Look& look() { return look_; }

 private:
  app::Panel& panel_;
  app::ImguiContext context_;
  app::Look look_;
  app::CommandSink sink_;
};

}  // namespace canopy::test
