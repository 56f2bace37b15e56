// The cost of drawing a tree: the number of vertices is checked, times are only printed, as they depend on the machine.

#include <gtest/gtest.h>
#include <imgui.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

#include "app/state/round_log.h"
#include "app/tree/tree_panel.h"
#include "tests/app/support/panel_harness.h"
#include "tests/app/support/sample_log.h"
#include "tests/app/tree/tree_samples.h"
#include "tests/trace/trace_builder.h"

namespace canopy::test {
namespace {

constexpr const char* recorded_512 = CANOPY_SOURCE_DIR "/tests/app/traces/wide-512.canopytrace";

std::shared_ptr<SampleLog> wide_log(uint32_t nodes = 1024) {
  TraceBuilder builder(5);
  builder.begin(DecodeMode::tree);
  auto log = std::make_shared<SampleLog>();
  const TracePieces pieces = builder.pieces();
  for (uint32_t token = 0; token < TraceBuilder::vocab; ++token) log->name(token, std::string(pieces(token).bytes));
  log->add(builder.tree(nodes));
  return log;
}

// gui.md, criterion 7: the fit view of 1,024 nodes takes at most 20,000 vertices, in a panel and in a whole window
TEST(TreeCost, TheFitViewOfAThousandNodesIsLight) {
  for (const auto& [width, height] : {std::pair(868.0f, 524.0f), std::pair(1920.0f, 1080.0f)}) {
    app::TreePanel panel;
    PanelHarness ui(panel, width, height);
    ui.view().rounds.log = wide_log();
    ui.frames(3);
    ASSERT_FALSE(panel.canvas().geometry().nodes.empty());
    EXPECT_LE(ui.vertices(), 20000u) << width << " x " << height << ", rows of " << panel.canvas().geometry().pitch;
    std::printf("%4.0f x %4.0f: rows of %5.2f px, %zu vertices\n", static_cast<double>(width),
                static_cast<double>(height), static_cast<double>(panel.canvas().geometry().pitch), ui.vertices());
  }
}

// Long limbs have more pieces than short ones, also where everything is twice as large.
TEST(TreeCost, AndSoIsThatOfFiveHundredOnALargeScreen) {
  struct Screen {
    float width, height;
    std::shared_ptr<app::RoundLog> log;
  };
  const Screen screens[] = {{1920, 1080, wide_log(512)},
                            {2560, 1440, wide_log(512)},
                            {2560, 1440, std::make_shared<app::TraceLog>(recorded_512)}};
  for (const Screen& screen : screens) {
    for (const float scale : {1.0f, 2.0f}) {
      app::TreePanel panel;
      PanelHarness ui(panel, screen.width, screen.height);
      ui.context().look().scale = scale;
      ui.view().rounds.log = screen.log;
      ui.frames(3);
      EXPECT_GT(panel.canvas().geometry().nodes.size(), 512u);
      EXPECT_LE(ui.vertices(), 20000u) << screen.width << " at " << scale;
      std::printf("512 nodes, %4.0f at %.0f %%: %zu vertices\n", static_cast<double>(screen.width),
                  static_cast<double>(scale * 100), ui.vertices());
    }
  }
}

TEST(TreeCost, AFrameAt1080p) {
  app::TreePanel panel;
  PanelHarness ui(panel, 1920, 1080);
  ui.view().rounds.log = wide_log();
  ui.frames(10);
  std::vector<double> ms;
  for (int i = 0; i < 100; ++i) {
    const auto start = std::chrono::steady_clock::now();
    ui.frame();
    ms.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
  }
  std::sort(ms.begin(), ms.end());
  std::printf("a frame of 1,024 nodes at 1080p: median %.2f ms, best %.2f ms of processor time by the wall clock\n",
              ms[ms.size() / 2], ms.front());
  EXPECT_GT(ui.vertices(), 5000u) << "all of the tree was drawn in it";
}

}  // namespace
}  // namespace canopy::test
