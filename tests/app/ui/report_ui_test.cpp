// "Report this device" in the window: from the device's menu and the palette, measured, saved, copied, cancelled.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/app/support/drawn_texts.h"
#include "tests/app/support/ui_harness.h"
#include "tests/base/temp_folder.h"

namespace canopy::test {
namespace {

namespace fs = std::filesystem;
constexpr const char* kJson = "{\"version\": 1}\n";

DeviceReported some_report() {
  DeviceReported report;
  report.json = std::make_shared<const std::string>(kJson);
  report.device = "A very good GPU (driver 1)";
  report.shape = "qwen3-8b-q4_k";
  report.kernels = "matrix";
  report.self_test = "Rows have the same bits alone and in wider passes.";
  report.passes = {{1, 5.25}, {8, 5.3}, {64, 9.4}};
  report.weights_gb_s = 812;
  report.peak_gb_s = 960;
  return report;
}

class ReportUi : public testing::Test {
 protected:
  ReportUi() : ui_({}, 1280, 800) {
    ui_.engine().script = [](ScriptedEngine& engine, const Command& command) {
      if (std::holds_alternative<LoadModel>(command)) engine.publish(small_model());
      if (std::holds_alternative<CancelReport>(command)) {
        Failure cancelled;
        cancelled.kind = ErrorKind::cancelled;
        engine.publish(cancelled);
      }
    };
    ui_.app().run(app::OpenModel{"/models/a.gguf"});
  }
  const app::ReportState& state() const { return ui_.view().report; }
  std::string file() const { return (folder_.path() / "reports" / "mine.json").string(); }

  static void open_box(ImGuiTestContext* ctx) {
    ctx->Yield(4);
    ctx->ItemClick("//Top bar/Device");
    ctx->Yield(3);
    ctx->ItemClick("//$FOCUSED/Report device");
    ctx->Yield(4);
  }
  static void type_path(ImGuiTestContext* ctx, const std::string& path) {
    ctx->ItemClick("//$FOCUSED/##report");
    ctx->KeyPress(ImGuiMod_Ctrl | ImGuiKey_A);
    ctx->KeyChars(path.c_str());
    ctx->KeyPress(ImGuiKey_Enter);
    ctx->Yield(3);
  }

  UiHarness ui_;
  TempFolder folder_;
};

TEST_F(ReportUi, MeasuresShowsAndSavesWhatTheEngineFound) {
  DrawnTexts texts;
  EXPECT_TRUE(ui_.run([&](ImGuiTestContext* ctx) {
    open_box(ctx);
    IM_CHECK(state().box_shown);
    ctx->ItemClick("//$FOCUSED/Measure");
    ctx->Yield(3);
    IM_CHECK_EQ(ui_.engine().count<ReportDevice>(), 1u);
    ui_.engine().publish(ReportProgress{{"Timing passes", 3, 12, false, -1}});
    texts.clear();
    ctx->Yield(3);
    IM_CHECK(texts.any_contains("Timing passes, 3 of 12"));
    ui_.engine().publish(some_report());
    ctx->Yield(2);
    texts.clear();
    ctx->Yield(2);
    IM_CHECK(texts.has("A very good GPU"));
    IM_CHECK(texts.has("1.79"));  // 9.4 ms of 5.25
    IM_CHECK(texts.any_contains("812 GB/s"));
    IM_CHECK(texts.cut().empty());
    type_path(ctx, file());
    IM_CHECK_STR_EQ(state().saved.c_str(), file().c_str());
    ctx->ItemClick("//$FOCUSED/Copy the report");
    ctx->Yield(2);
    IM_CHECK_STR_EQ(ImGui::GetClipboardText(), kJson);
    ctx->KeyPress(ImGuiKey_Escape);
    ctx->Yield(3);
    IM_CHECK(!state().box_shown);
  }));
  std::ifstream written(file());
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(written), {}), kJson) << "the folder was made";
}

TEST_F(ReportUi, AFileThatCannotBeWrittenIsSaidInTheBox) {
  std::ofstream(folder_.path() / "file") << "no folder";
  EXPECT_TRUE(ui_.run([&](ImGuiTestContext* ctx) {
    open_box(ctx);
    ctx->ItemClick("//$FOCUSED/Measure");
    ctx->Yield(2);
    ui_.engine().publish(some_report());
    ctx->Yield(3);
    type_path(ctx, (folder_.path() / "file" / "a.json").string());
    IM_CHECK(state().saved.empty());
    IM_CHECK(state().problem.find("a.json") != std::string::npos);
  }));
}

TEST_F(ReportUi, GoesOnWhileTheBoxIsClosedAndIsCancelledBelow) {
  EXPECT_TRUE(ui_.run([&](ImGuiTestContext* ctx) {
    open_box(ctx);
    ctx->ItemClick("//$FOCUSED/Measure");
    ctx->Yield(2);
    ctx->KeyPress(ImGuiKey_Escape);
    ctx->Yield(3);
    IM_CHECK(!state().box_shown);
    IM_CHECK(state().busy());
    ctx->ItemClick("//Status bar/Cancel");
    ctx->Yield(3);
    IM_CHECK_EQ(ui_.engine().count<CancelReport>(), 1u);
    IM_CHECK(!state().busy());
    open_box(ctx);
    IM_CHECK(ctx->ItemExists("//$FOCUSED/Measure"));
  }));
}

}  // namespace
}  // namespace canopy::test
