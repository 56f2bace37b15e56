// Files that another program drops on the window: the paths that arrive in the application.

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "app/platform/desktop_window.h"
#include "app/run.h"
#include "tests/app/platform/xdnd_source.h"

namespace canopy::test {
namespace {

// gui.md, criterion 18. That these paths are then opened is tested in replay_ui_test.cpp (OpenedPaths).
TEST(DroppedFiles, ComeOutAsThePathsTheyAre) {
  if (!app::display_present()) GTEST_SKIP() << "there is no display; ctest starts this program under xvfb-run";
  app::AppOptions options;
  options.system_fonts = false;
  app::DesktopWindow window(options);
  for (const std::vector<std::string>& paths :
       {std::vector<std::string>{"/models/a model.gguf"},
        {"/notes/100% na\u00efve.txt", "/models/hf--folder", "/traces/run.canopytrace"}}) {
    bool taken = false;
    std::thread source([&] { taken = drop_files("Canopy", paths); });
    std::optional<app::ChosenFiles> got;
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!got && std::chrono::steady_clock::now() < end) {
      window.wait_events(0.05);
      got = window.take_files();
    }
    for (int i = 0; i < 4; ++i) window.wait_events(0.05);
    source.join();
    EXPECT_TRUE(taken);
    ASSERT_TRUE(got);
    EXPECT_EQ(got->paths, paths) << "all of them";
    EXPECT_FALSE(got->to_attach) << "what they are decides";
    EXPECT_FALSE(window.take_files().has_value()) << "once";
  }
}

}  // namespace
}  // namespace canopy::test
