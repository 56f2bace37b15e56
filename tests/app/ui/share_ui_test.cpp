// "Share" in the window: from the menu and by its keys, each kind of file, and one that cannot be written.

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "engine/base/files.h"
#include "engine/base/mapped_file.h"
#include "tests/app/support/drawn_texts.h"
#include "tests/app/support/ui_harness.h"
#include "tests/base/temp_folder.h"

namespace canopy::test {
namespace {

namespace fs = std::filesystem;

class ShareUi : public testing::Test {
 protected:
  ShareUi() : ui_({}, 1280, 800) {
    ui_.app().run(app::RoundsCommand(app::WatchDemo{}));
    ui_.app().run(app::RoundsCommand(app::ShowRound{11}));
  }
  const app::ShareState& state() const { return ui_.view().share; }
  std::string file(const char* name) const { return (folder_.path() / "shared" / name).string(); }

  static void open_box(ImGuiTestContext* ctx) {
    ctx->Yield(3);
    ctx->KeyPress(ImGuiMod_Ctrl | ImGuiMod_Shift | ImGuiKey_S);
    ctx->Yield(4);
  }
  static void type_path(ImGuiTestContext* ctx, const std::string& path) {
    ctx->ItemClick("//$FOCUSED/##share");
    ctx->KeyPress(ImGuiMod_Ctrl | ImGuiKey_A);
    ctx->KeyChars(path.c_str());
    ctx->KeyPress(ImGuiKey_Enter);
  }
  /// Draws frames until the file is made; the window goes on meanwhile.
  void await_end(ImGuiTestContext* ctx) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    ctx->Yield(3);
    while (state().running && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      ctx->Yield();
    }
    ctx->Yield(2);
  }

  UiHarness ui_;
  TempFolder folder_;
};

TEST_F(ShareUi, MakesEveryKindOfFile) {
  DrawnTexts texts;
  EXPECT_TRUE(ui_.run([&](ImGuiTestContext* ctx) {
    open_box(ctx);
    IM_CHECK(state().box_shown);
    IM_CHECK(texts.any_contains("Pass 12 of 53, of the recording that is shown"));
    for (const auto& [button, name] : {std::pair("Share as PNG", "a.png"), std::pair("Share as SVG", "a.svg"),
                                       std::pair("Share as page", "a.html")}) {
      ctx->ItemClick((std::string("//$FOCUSED/") + button).c_str());
      ctx->Yield(2);
      texts.clear();
      ctx->Yield(2);
      IM_CHECK(texts.cut().empty());
      type_path(ctx, file(name));
      await_end(ctx);
      IM_CHECK_STR_EQ(state().saved.c_str(), file(name).c_str());
    }
    ctx->KeyPress(ImGuiKey_Escape);
    ctx->Yield(3);
    IM_CHECK(!state().box_shown);
  }));
  EXPECT_EQ(read_small_file(file("a.png"), 1 << 24).substr(1, 3), "PNG");
  EXPECT_NE(read_small_file(file("a.svg"), 1 << 24).find("Pass 12 of 53"), std::string::npos);
  const std::string page = read_small_file(file("a.html"), 1 << 24);
  EXPECT_NE(page.find("Content-Security-Policy"), std::string::npos);
  EXPECT_LE(page.size(), 2'000'000u);
}

TEST_F(ShareUi, AnAnimationIsCancelledAndLeavesNoFile) {
  EXPECT_TRUE(ui_.run([&](ImGuiTestContext* ctx) {
    open_box(ctx);
    ctx->ItemClick("//$FOCUSED/Share as animation");
    ctx->Yield(2);
    type_path(ctx, file("a.svg"));
    ctx->Yield(2);
    IM_CHECK(state().running);
    ctx->ItemClick("//$FOCUSED/Cancel the file");
    await_end(ctx);
    IM_CHECK(!state().running);
    IM_CHECK(state().saved.empty());
    IM_CHECK(state().problem.empty());
  }));
  EXPECT_FALSE(fs::exists(file("a.svg")));
}

TEST_F(ShareUi, AFileThatCannotBeWrittenIsSaidInTheBox) {
  folder_.write("shared", "no folder");
  EXPECT_TRUE(ui_.run([&](ImGuiTestContext* ctx) {
    open_box(ctx);
    type_path(ctx, file("a.png"));
    await_end(ctx);
    IM_CHECK(state().saved.empty());
    IM_CHECK(state().problem.find("a.png") != std::string::npos);
  }));
}

}  // namespace
}  // namespace canopy::test
