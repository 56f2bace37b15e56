// Recording from the window, under Dear ImGui's Test Engine with a scripted engine.

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/app/support/drawn_texts.h"
#include "tests/app/support/ui_harness.h"
#include "tests/base/temp_folder.h"
#include "tests/trace/trace_builder.h"

namespace canopy::test {
namespace {

using namespace app;  // NOLINT: the whole file is about it

namespace fs = std::filesystem;

/// The application with a model and an engine that reports recordings as the real one does.
class RecordingUi {
 public:
  RecordingUi() : ui(settings(), 1600, 1000) {
    ui.engine().script = [this](ScriptedEngine& engine, const Command& command) {
      if (std::holds_alternative<LoadModel>(command)) engine.publish(small_model());
      if (const auto* record = std::get_if<RecordTrace>(&command)) begin(engine, *record);
      if (std::holds_alternative<StopRecording>(command)) engine.publish(Recording{false, name, 2048, 12, ""});
    };
    ui.app().run(OpenModel{"/models/a.gguf"});
    ui.app().pump();
  }
  fs::path traces() const { return folder.path() / "traces"; }
  const RecordingState& state() const { return ui.view().recording; }

 private:
  AppSettings settings() const {
    AppSettings settings;
    settings.trace_folder = traces().string();
    return settings;
  }
  void begin(ScriptedEngine& engine, const RecordTrace& record) {
    if (!fails.empty()) {
      Failure failure;
      failure.title = "Recording could not begin";
      failure.detail = fails;
      return engine.publish(failure);
    }
    name = fs::path(record.path).filename().string();
    TraceBuilder().write(record.path, 12, record.redact);
    engine.publish(Recording{true, name, 300, 0, ""});
  }

 public:
  TempFolder folder;
  UiHarness ui;
  std::string name, fails;
};

constexpr const char* kPath = "//$FOCUSED/##trace";

void record_by_mouse(ImGuiTestContext* ctx) {
  ctx->Yield(3);
  ctx->ItemClick("//Timeline/Record a trace");
  ctx->Yield(3);
  ctx->ItemClick("//$FOCUSED/Record");
  ctx->Yield(3);
}

TEST(RecordingUiTest, BeginsInTheUsersFolderAndIsStoppedAndReplayed) {
  RecordingUi test;
  EXPECT_TRUE(test.ui.run([&](ImGuiTestContext* ctx) {
    ctx->Yield(3);
    ctx->ItemClick("//Timeline/Record a trace");
    ctx->Yield(3);
    IM_CHECK(test.state().box_shown);
    ctx->ItemClick("//$FOCUSED/Record");
    ctx->Yield(3);
    IM_CHECK(!test.state().box_shown);
    IM_CHECK_EQ(test.ui.engine().count<RecordTrace>(), 1u);
    const RecordTrace asked = test.ui.engine().last<RecordTrace>();
    IM_CHECK(fs::path(asked.path).parent_path() == test.traces());
    IM_CHECK(asked.path.ends_with(".canopytrace"));
    IM_CHECK(!asked.redact);
    IM_CHECK(fs::exists(asked.path));  // the folder was made
    IM_CHECK(test.state().phase == RecordingPhase::on);
    test.ui.engine().publish(Recording{true, test.name, 2048, 12, ""});
    ctx->Yield(3);
    IM_CHECK(ctx->ItemExists("//Timeline/Stop recording"));
    IM_CHECK(!ctx->ItemExists("//Timeline/Record a trace"));
    ctx->ItemClick("//Timeline/Stop recording");
    ctx->Yield(3);
    IM_CHECK_EQ(test.ui.engine().count<StopRecording>(), 1u);
    IM_CHECK(!test.state().running());
    ctx->ItemClick("//Timeline/Open the recording");
    ctx->Yield(3);
    IM_CHECK_STR_EQ(test.ui.view().rounds.trace_path.c_str(), asked.path.c_str());
  }));
}

TEST(RecordingUiTest, ByKeysAloneWithAnotherNameAndWithoutTexts) {  // gui.md, criterion 25
  RecordingUi test;
  const std::string path = (test.folder.path() / "mine").string();
  EXPECT_TRUE(test.ui.run([&](ImGuiTestContext* ctx) {
    ctx->Yield(3);
    ctx->KeyPress(ImGuiMod_Ctrl | ImGuiMod_Shift | ImGuiKey_R);
    ctx->Yield(3);
    IM_CHECK(test.state().box_shown);
    ctx->KeyPress(ImGuiMod_Ctrl | ImGuiKey_A);  // the text box of the path has the focus
    ctx->KeyChars(path.c_str());
    ctx->KeyPress(ImGuiKey_Tab);
    ctx->KeyPress(ImGuiKey_Space);  // leave out texts
    ctx->KeyPress(ImGuiKey_Tab);
    ctx->KeyPress(ImGuiKey_Space);  // record
    ctx->Yield(3);
  }));
  EXPECT_EQ(test.ui.engine().last<RecordTrace>().path, path + ".canopytrace");
  EXPECT_TRUE(test.ui.engine().last<RecordTrace>().redact);
}

TEST(RecordingUiTest, ThePaletteBeginsAndEnds) {
  RecordingUi test;
  EXPECT_TRUE(test.ui.run([&](ImGuiTestContext* ctx) {
    ctx->Yield(3);
    const auto choose = [&](const char* words) {
      ctx->KeyPress(ImGuiMod_Ctrl | ImGuiKey_K);
      ctx->Yield(3);
      ctx->KeyCharsAppend(words);
      ctx->Yield(2);
      ctx->KeyPress(ImGuiKey_Enter);
      ctx->Yield(4);
    };
    choose("record a trace");
    IM_CHECK(test.state().box_shown);
    ctx->KeyPress(ImGuiKey_Enter);
    ctx->Yield(3);
    IM_CHECK(test.state().running());
    choose("stop recording");
    IM_CHECK(!test.state().running());
  }));
}

TEST(RecordingUiTest, AFolderThatCannotBeWrittenIsSaidAndNothingRuns) {
  RecordingUi test;
  test.fails = "The trace cannot be recorded: Permission denied.";
  EXPECT_TRUE(test.ui.run([&](ImGuiTestContext* ctx) {
    record_by_mouse(ctx);
    IM_CHECK(!test.state().running());
    IM_CHECK(ctx->ItemExists("//Timeline/Record a trace"));
    IM_CHECK_EQ(test.ui.view().cards.size(), 1u);
    IM_CHECK_STR_EQ(test.ui.view().cards[0].detail.c_str(), test.fails.c_str());
  }));
}

TEST(RecordingUiTest, AFullDiskIsSaidAndTheButtonIsBack) {
  RecordingUi test;
  EXPECT_TRUE(test.ui.run([&](ImGuiTestContext* ctx) {
    record_by_mouse(ctx);
    test.ui.engine().publish(Recording{false, test.name, 2048, 40, "Recording stopped after 40 passes: disk full."});
    ctx->Yield(3);
    IM_CHECK_EQ(test.ui.view().cards.size(), 1u);
    IM_CHECK(ctx->ItemExists("//Timeline/Record a trace"));
    IM_CHECK(ctx->ItemExists("//Timeline/Open the recording"));
  }));
}

TEST(RecordingUiTest, TheBoxWarnsOfTheFileThatWouldBeWritten) {
  RecordingUi test;
  const fs::path there = test.folder.path() / "demo.canopytrace";
  TraceBuilder().write(there, 2);
  const auto warned = [&](ImGuiTestContext* ctx, const std::string& typed) {
    ctx->ItemInputValue(kPath, "");
    ctx->ItemClick(kPath);
    ctx->KeyChars(typed.c_str());
    ctx->Yield(2);
    const DrawnTexts drawn;
    ctx->Yield(2);
    return drawn.any_contains("will be replaced");
  };
  EXPECT_TRUE(test.ui.run([&](ImGuiTestContext* ctx) {
    ctx->Yield(3);
    ctx->ItemClick("//Timeline/Record a trace");
    ctx->Yield(3);
    IM_CHECK(warned(ctx, there.string()));
    IM_CHECK(!warned(ctx, (test.folder.path() / "other").string()));
    IM_CHECK(warned(ctx, (test.folder.path() / "demo").string()));  // the name gets the ending of a trace
  }));
}

// Esc closes the box first and does not stop the reply.
TEST(RecordingUiTest, EscInTheBoxLeavesTheReplyAlone) {
  RecordingUi test;
  EXPECT_TRUE(test.ui.run([&](ImGuiTestContext* ctx) {
    ctx->Yield(3);
    test.ui.app().run(SendMessage{"A question"});
    ctx->Yield(2);
    IM_CHECK(test.ui.view().busy());
    ctx->ItemClick("//Timeline/Record a trace");
    ctx->Yield(3);
    ctx->KeyPress(ImGuiKey_Escape);
    ctx->Yield(3);
    IM_CHECK(!test.state().box_shown);
    IM_CHECK_EQ(test.ui.engine().count<StopReply>(), 0u);
    ctx->ItemClick("//Top bar/View");
    ctx->Yield(3);
    ctx->KeyPress(ImGuiKey_Escape);
    ctx->Yield(3);
    IM_CHECK_EQ(test.ui.engine().count<StopReply>(), 0u);
    ctx->KeyPress(ImGuiKey_Escape);
    ctx->Yield(3);
    IM_CHECK_EQ(test.ui.engine().count<StopReply>(), 1u);
  }));
}

TEST(RecordingUiTest, EscAndNotNowCloseTheBox) {
  RecordingUi test;
  EXPECT_TRUE(test.ui.run([&](ImGuiTestContext* ctx) {
    ctx->Yield(3);
    ctx->ItemClick("//Timeline/Record a trace");
    ctx->Yield(3);
    ctx->KeyPress(ImGuiKey_Escape);
    ctx->Yield(3);
    IM_CHECK(!test.state().box_shown);
    ctx->ItemClick("//Timeline/Record a trace");
    ctx->Yield(3);
    ctx->ItemClick("//$FOCUSED/Not now");
    ctx->Yield(3);
    IM_CHECK(!test.state().box_shown);
  }));
  EXPECT_EQ(test.ui.engine().count<RecordTrace>(), 0u);
}

}  // namespace
}  // namespace canopy::test
