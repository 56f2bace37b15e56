// What frames cost the processor where most is drawn. Printed, not judged: times depend on the machine. What is judged
// is that all of it was drawn.

#include <gtest/gtest.h>
#include <imgui.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <vector>

#include "app/tree/tree_panel.h"
#include "tests/app/compare/compare_samples.h"
#include "tests/app/support/panel_harness.h"
#include "tests/app/support/sample_log.h"
#include "tests/app/support/ui_harness.h"
#include "tests/trace/trace_builder.h"

namespace canopy::test {
namespace {

constexpr uint32_t kNodes = 1024;
constexpr int kFrames = 100;

/// Milliseconds of processor time of this thread, so that other programs do not count.
double thread_ms() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
}

template <class Frame>
void print_frames(const char* what, Frame&& frame) {
  std::vector<double> ms;
  for (int i = 0; i < kFrames; ++i) {
    const double start = thread_ms();
    frame();
    ms.push_back(thread_ms() - start);
  }
  std::sort(ms.begin(), ms.end());
  std::printf("%s: median %.2f ms, best %.2f, worst %.2f ms of processor time a frame\n", what, ms[kFrames / 2],
              ms.front(), ms.back());
}

TEST(WindowBench, ATreeOfAThousandNodes) {
  TraceBuilder builder(5);
  builder.begin(DecodeMode::tree);
  auto log = std::make_shared<SampleLog>();
  const TracePieces pieces = builder.pieces();
  for (uint32_t token = 0; token < TraceBuilder::vocab; ++token) log->name(token, std::string(pieces(token).bytes));
  log->add(builder.tree(kNodes));
  app::TreePanel panel;
  PanelHarness ui(panel, 1920, 1080);
  ui.view().rounds.log = log;
  ui.frames(10);
  print_frames("the tree of 1,024 nodes at 1080p", [&] { ui.frame(); });
  EXPECT_GT(ui.vertices(), 5000u);
}

// Four columns that race, each with trees of 1,024 nodes in every round.
TEST(WindowBench, FourColumnsWithTreesOfAThousandNodes) {
  UiHarness ui({}, 1920, 1080);
  ComparingEngine comparing(ui.engine());
  ui.engine().devices_ = some_devices();
  ui.engine().script = [&](ScriptedEngine& engine, const Command& command) {
    if (std::holds_alternative<LoadModel>(command)) {
      ModelReady model = small_model();
      model.drafter = "drafter.gguf";
      model.block = 16;
      engine.publish(model);
    }
    if (const auto* compare = std::get_if<Compare>(&command)) comparing.begin(*compare);
  };
  ui.app().run(app::OpenModel{"/models/a.gguf"});
  ui.app().pump();
  ui.app().run(app::ShellCommand(app::ShowPage{app::WindowPage::compare}));
  app::CompareSetup setup = ui.view().comparison.compare_setup;
  for (ComparisonColumn& column : setup.columns) column.way = {DecodeMode::tree, kNodes};
  ui.app().run(app::ComparisonCommand(app::SetCompareSetup{setup}));
  ui.app().run(app::ComparisonCommand(app::StartComparison{}));
  ASSERT_EQ(comparing.command.columns.size(), 4u);
  comparing.make();
  comparing.finish();
  ui.app().pump();
  ui.app().run(app::ComparisonCommand(app::PlayRace{}));
  for (int i = 0; i < 10; ++i) ui.frame();
  print_frames("four columns with trees of 1,024 nodes at 1080p, racing", [&] { ui.frame(); });
  ASSERT_TRUE(ui.view().comparison.race.playing || ui.view().comparison.race_now() > 0);
  EXPECT_GT(ImGui::GetDrawData()->TotalVtxCount, 5000);
}

}  // namespace
}  // namespace canopy::test
