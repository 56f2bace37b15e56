// The switch between Watch, What if, Lab and Compare: each is reached by the mouse, however little room the bar has.

#include <gtest/gtest.h>

#include <string>

#include "tests/app/support/drawn_texts.h"
#include "tests/app/support/ui_harness.h"

namespace canopy::test {
namespace {

using app::WindowLayout;
using app::WindowPage;

struct Goal {
  const char* words;
  WindowPage page;
  WindowLayout layout;
};
constexpr Goal kGoals[] = {{"What if", WindowPage::rounds, WindowLayout::what_if},
                           {"Compare", WindowPage::compare, WindowLayout::lab},
                           {"Watch", WindowPage::rounds, WindowLayout::watch},
                           {"Lab", WindowPage::rounds, WindowLayout::lab}};

/// Clicks that choice, behind the chevron where the bar has no room for it.
void choose(ImGuiTestContext* ctx, const Goal& goal) {
  const std::string direct = std::string("//Top bar/") + goal.words;
  if (ctx->ItemExists(direct.c_str())) return ctx->ItemClick(direct.c_str());
  ctx->ItemClick("//Top bar/More layouts");
  ctx->Yield(2);
  ctx->ItemClick((std::string("//$FOCUSED/") + goal.words).c_str());
}

TEST(LayoutSwitch, LeadsEverywhereByTheMouseAtEverySize) {
  for (const auto& [width, height, scale] : {std::tuple(1280.0f, 800.0f, 1.0f),
                                             {1280.0f, 800.0f, 2.0f},
                                             {900.0f, 600.0f, 1.0f},
                                             {1920.0f, 1080.0f, 1.0f},
                                             {640.0f, 480.0f, 1.0f}}) {
    app::AppSettings settings;
    settings.layout = WindowLayout::lab;
    settings.user_scale = scale;
    UiHarness ui(settings, width, height);
    ui.engine().script = answers_with({"Yes."});
    ui.app().run(app::OpenModel{"/models/a.gguf"});
    ui.app().pump();
    for (int i = 0; i < 4; ++i) ui.frame();
    for (const WindowLayout from : {WindowLayout::lab, WindowLayout::watch, WindowLayout::what_if}) {
      for (const Goal& goal : kGoals) {
        ui.app().run(app::ShellCommand(app::SetLayout{from}));
        EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
          ctx->Yield(3);
          choose(ctx, goal);
          ctx->Yield(3);
          IM_CHECK(ui.view().shell.page == goal.page);
          if (goal.page == WindowPage::rounds) IM_CHECK(ui.view().shell.layout == goal.layout);
        })) << width
            << " to " << goal.words;
      }
    }
  }
}

TEST(LayoutSwitch, HasNoMenuWhereAllHaveRoom) {
  app::AppSettings settings;
  settings.layout = WindowLayout::watch;
  UiHarness ui(settings, 1920, 1080);
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    ctx->Yield(3);
    IM_CHECK(!ctx->ItemExists("//Top bar/More layouts"));
  }));
}

}  // namespace
}  // namespace canopy::test
