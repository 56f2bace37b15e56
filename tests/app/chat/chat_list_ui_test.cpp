// The list of chats in Watch, by mouse and keys; the last chat at the start; the width of the chat.

#include <gtest/gtest.h>
#include <imgui_internal.h>

#include <memory>
#include <string>

#include "app/state/settings.h"
#include "tests/app/support/drawn_texts.h"
#include "tests/app/support/ui_harness.h"
#include "tests/base/temp_folder.h"

namespace canopy::test {
namespace {

bool on_show(const char* window) {
  const ImGuiWindow* found = ImGui::FindWindowByName(window);
  return found && found->Active;
}

class ChatListUi : public testing::Test {
 protected:
  /// A window in Watch with these chats, the newest last.
  std::unique_ptr<UiHarness> window(std::initializer_list<const char*> chats, float width = 1280, float height = 800) {
    app::AppSettings settings;
    settings.layout = app::WindowLayout::watch;
    settings.chat_folder = (folder_.path() / "chats").string();
    settings.settings_file = (folder_.path() / "settings.json").string();
    settings.saved = app::read_settings(settings.settings_file).settings;
    settings.saved.reduced_motion = true;
    settings.clock = [this] { return now_ms_ += 10; };
    auto ui = std::make_unique<UiHarness>(settings, width, height);
    ui->engine().script = answers_with({"An answer."});
    ui->app().run(app::OpenModel{"/models/a.gguf"});
    frames(*ui, 4);
    for (const char* question : chats) {
      now_ms_ += 1000;
      ui->app().run(app::NewChat{});
      ui->app().run(app::SendMessage{question});
      frames(*ui, 4);
    }
    return ui;
  }
  static void frames(UiHarness& ui, int count) {
    for (int i = 0; i < count; ++i) {
      ui.app().pump();
      ui.frame();
    }
  }
  static std::string row(const UiHarness& ui, size_t index, const char* item) {
    return "//Watch chats/**/" + ui.view().chat.listings.at(index).id + "/" + item;
  }

  TempFolder folder_;
  int64_t now_ms_ = 1'700'000'000'000;
};

TEST_F(ChatListUi, IsOpenedByItsButtonAndItsKeyAndThatIsRemembered) {
  {
    const auto ui = window({"Otters"});
    EXPECT_FALSE(on_show("Watch chats")) << "there was nothing to list when the window opened";
    EXPECT_TRUE(ui->run([&](ImGuiTestContext* ctx) {
      ctx->ItemClick("//Watch chat/Show chats");
      ctx->Yield(3);
      IM_CHECK(on_show("Watch chats"));
      const DrawnTexts drawn;
      ctx->Yield(2);
      IM_CHECK(drawn.any_contains("Otters"));
      ctx->ItemClick("//Watch chats/Hide chats");
      ctx->Yield(3);
      IM_CHECK(!on_show("Watch chats"));
      ctx->KeyChars("typing goes on");
      ctx->KeyPress(ImGuiKey_Enter);
      ctx->Yield(4);
      IM_CHECK_EQ(ui->view().messages.size(), 4u);
    }));
    ui->app().remember();
  }
  const auto later = window({});
  EXPECT_FALSE(on_show("Watch chats"));
  EXPECT_EQ(later->view().messages.size(), 4u) << "the last chat is there again";
  EXPECT_EQ(later->view().messages.front().text, "Otters");
  EXPECT_TRUE(later->run([&](ImGuiTestContext* ctx) {
    ctx->KeyPress(ImGuiMod_Ctrl | ImGuiKey_B);
    ctx->Yield(3);
    IM_CHECK(on_show("Watch chats"));
  }));
}

TEST_F(ChatListUi, IsThereAtTheStartWhereThereAreChats) {
  window({"Otters"})->app().remember();
  const auto wide = window({});
  EXPECT_TRUE(on_show("Watch chats"));
}

TEST_F(ChatListUi, OpensSearchesAndBeginsChats) {
  const auto ui = window({"Otters", "Bees"});
  EXPECT_TRUE(ui->run([&](ImGuiTestContext* ctx) {
    ctx->KeyPress(ImGuiMod_Ctrl | ImGuiKey_B);
    ctx->Yield(3);
    ctx->KeyChars("OTT");  // the key leads to the search box
    ctx->Yield(3);
    IM_CHECK_EQ(ui->view().chat.listings.size(), 1u);
    ctx->ItemClick(row(*ui, 0, "Open chat").c_str());
    ctx->Yield(3);
    IM_CHECK_STR_EQ(ui->view().messages.front().text.c_str(), "Otters");
    ctx->KeyChars("And here one types");  // the chat has the keyboard
    ctx->KeyPress(ImGuiKey_Enter);
    ctx->Yield(4);
    IM_CHECK_EQ(ui->view().messages.size(), 4u);
    ctx->ItemClick("//Watch chats/New chat");
    ctx->Yield(3);
    IM_CHECK(ui->view().messages.empty());
  }));
}

TEST_F(ChatListUi, RenamesPinsAndDeletesByTheMouse) {
  const auto ui = window({"Otters", "Bees"});
  EXPECT_TRUE(ui->run([&](ImGuiTestContext* ctx) {
    ctx->ItemClick("//Watch chat/Show chats");
    ctx->Yield(3);
    ctx->ItemDoubleClick(row(*ui, 1, "Open chat").c_str());
    ctx->Yield(3);
    ctx->KeyChars("Rivers");
    ctx->KeyPress(ImGuiKey_Enter);
    ctx->Yield(3);
    IM_CHECK_STR_EQ(ui->view().chat.listings[1].title.c_str(), "Rivers");
    ctx->ItemClick(row(*ui, 1, "More").c_str());
    ctx->ItemClick("//$FOCUSED/Pin");
    ctx->Yield(3);
    IM_CHECK_STR_EQ(ui->view().chat.listings[0].title.c_str(), "Rivers");
    IM_CHECK(ui->view().chat.listings[0].pinned);
    ctx->ItemClick(row(*ui, 1, "Open chat").c_str(), ImGuiMouseButton_Right);
    ctx->ItemClick("//$FOCUSED/Rename");
    ctx->Yield(3);
    ctx->KeyChars("Hives");
    ctx->KeyPress(ImGuiKey_Enter);
    ctx->Yield(3);
    IM_CHECK_STR_EQ(ui->view().chat.listings[1].title.c_str(), "Hives");
    ctx->ItemClick(row(*ui, 0, "More").c_str());
    ctx->ItemClick("//$FOCUSED/Delete");
    ctx->Yield(3);
    IM_CHECK_EQ(ui->view().chat.listings.size(), 1u);
    ctx->ItemClick("//Watch chats/Undo delete");
    ctx->Yield(3);
    IM_CHECK_EQ(ui->view().chat.listings.size(), 2u);
    IM_CHECK(ui->view().chat.listings[0].pinned);
  }));
}

TEST_F(ChatListUi, RenamesAndDeletesByKeys) {
  const auto ui = window({"Otters", "Bees"});
  EXPECT_TRUE(ui->run([&](ImGuiTestContext* ctx) {
    ctx->ItemClick("//Watch chat/Show chats");
    ctx->Yield(3);
    ctx->NavMoveTo(row(*ui, 1, "Open chat").c_str());
    ctx->KeyPress(ImGuiKey_F2);
    ctx->Yield(3);
    IM_CHECK(ui->view().shell.page == app::WindowPage::rounds);
    ctx->KeyChars("Rivers");
    ctx->KeyPress(ImGuiKey_Enter);
    ctx->Yield(3);
    IM_CHECK_STR_EQ(ui->view().chat.listings[1].title.c_str(), "Rivers");
    ctx->NavMoveTo(row(*ui, 1, "Open chat").c_str());
    ctx->KeyPress(ImGuiKey_Delete);
    ctx->Yield(3);
    IM_CHECK_EQ(ui->view().chat.listings.size(), 1u);
    ctx->NavMoveTo(row(*ui, 0, "Open chat").c_str());
    ctx->KeyPress(ImGuiMod_Ctrl | ImGuiKey_Z);
    ctx->Yield(3);
    IM_CHECK_EQ(ui->view().chat.listings.size(), 2u);
  }));
}

TEST_F(ChatListUi, LiesOverTheChatInANarrowWindow) {
  window({"Otters", "Bees"}, 1000, 700)->app().remember();
  const auto ui = window({}, 1000, 700);
  EXPECT_FALSE(ui->view().shell.chat_list_over);
  EXPECT_TRUE(ui->run([&](ImGuiTestContext* ctx) {
    const ImVec2 chat = ImGui::FindWindowByName("Watch chat")->Size;
    ctx->KeyPress(ImGuiMod_Ctrl | ImGuiKey_B);
    ctx->Yield(3);
    IM_CHECK(ui->view().shell.chat_list_over);
    IM_CHECK(!on_show("Watch chats"));
    IM_CHECK_EQ(ImGui::FindWindowByName("Watch chat")->Size.x, chat.x);
    const std::string drawer = ImGui::GetCurrentContext()->OpenPopupStack.back().Window->Name;
    ctx->ItemClick(("//" + drawer + "/**/" + ui->view().chat.listings.at(1).id + "/Open chat").c_str());
    ctx->Yield(4);
    IM_CHECK_STR_EQ(ui->view().messages.front().text.c_str(), "Otters");
    IM_CHECK(!ui->view().shell.chat_list_over);
    ctx->KeyPress(ImGuiMod_Ctrl | ImGuiKey_B);
    ctx->Yield(3);
    ctx->MouseMoveToPos({800, 300});
    ctx->MouseClick();
    ctx->Yield(4);
    IM_CHECK(!ui->view().shell.chat_list_over);
  }));
  EXPECT_EQ(ui->view().shell.chat_list, std::nullopt) << "what is only for the moment is not remembered";
}

TEST_F(ChatListUi, TheEdgeOfTheChatIsDraggedAndRemembered) {
  {
    const auto ui = window({"Otters"});
    EXPECT_TRUE(ui->run([&](ImGuiTestContext* ctx) {
      const ImGuiWindow* chat = ImGui::FindWindowByName("Watch chat");
      const float usual = chat->Size.x;
      ctx->ItemDragWithDelta("//Watch edge/Width of the chat", {120, 0});
      ctx->Yield(3);
      IM_CHECK_LE(std::abs(chat->Size.x - usual - 120), 2);
      ctx->ItemDoubleClick("//Watch edge/Width of the chat");
      ctx->Yield(3);
      IM_CHECK_EQ(chat->Size.x, usual);
      ctx->ItemDragWithDelta("//Watch edge/Width of the chat", {2000, 0});
      ctx->Yield(3);
      IM_CHECK_GE(ImGui::FindWindowByName("Watch tree")->Size.x, 256);
      ctx->ItemDragWithDelta("//Watch edge/Width of the chat", {-400, 0});
      ctx->Yield(3);
    }));
    ui->app().remember();
    EXPECT_GT(ui->view().shell.chat_width, 0);
  }
  const float kept = app::read_settings((folder_.path() / "settings.json").string()).settings.chat_width;
  EXPECT_GT(kept, 288);
}

// Both windows have the folder; time passes by the clock of the test.
TEST_F(ChatListUi, ShowsWhatAnotherWindowDoesAndDrawsNothingOtherwise) {
  window({"Otters"})->app().remember();
  const auto ui = window({});
  ASSERT_TRUE(on_show("Watch chats"));
  EXPECT_LE(ui->app().seconds_to_change(), 2.1);
  frames(*ui, 2);
  now_ms_ += 60'000;
  ui->app().pump();
  now_ms_ += 60'000;
  EXPECT_FALSE(ui->app().pump()) << "nothing changed, so no frame is drawn";
  app::ViewModel view;
  app::ChatDesk other((folder_.path() / "chats").string());
  other.begin(view);
  const app::UiCommand rename =
      app::ChatCommand(app::RenameChat{"Renamed elsewhere", ui->view().chat.listings.at(0).id});
  app::Effects effects = app::update(view, rename);
  other.run(view, rename, effects);
  now_ms_ += 60'000;
  EXPECT_TRUE(ui->app().pump());
  EXPECT_EQ(ui->view().chat.listings.at(0).title, "Renamed elsewhere");
  EXPECT_EQ(ui->view().messages.title, "Renamed elsewhere");
}

}  // namespace
}  // namespace canopy::test
