// Serving in the window: the box with its settings, the list of what clients ask for, and a request on show, by mouse
// and keys; what of it is remembered.

#include <gtest/gtest.h>
#include <imgui_internal.h>

#include <filesystem>
#include <memory>
#include <string>
#include <tuple>

#include "app/state/settings.h"
#include "tests/app/support/drawn_texts.h"
#include "tests/app/support/ui_harness.h"
#include "tests/base/temp_folder.h"

namespace canopy::test {
namespace {

constexpr uint64_t kRequest = kFirstServedReply + 3;

class ServedUi : public testing::Test {
 protected:
  /// A window in Watch whose engine serves where it is asked to.
  std::unique_ptr<UiHarness> window(float width = 1280, float height = 800) {
    app::AppSettings settings;
    settings.layout = app::WindowLayout::watch;
    settings.chat_folder = (folder_.path() / "chats").string();
    settings.trace_folder = (folder_.path() / "traces").string();
    settings.settings_file = (folder_.path() / "settings.json").string();
    settings.saved = app::read_settings(settings.settings_file).settings;
    settings.saved.reduced_motion = true;
    settings.saved.chat_list = true;
    settings.clock = [this] { return now_ms_ += 10; };
    auto ui = std::make_unique<UiHarness>(settings, width, height);
    ui->engine().script = [answer = answers_with({"An answer."})](ScriptedEngine& engine, const Command& command) {
      answer(engine, command);
      if (const auto* serve = std::get_if<Serve>(&command)) {
        Serving told;
        if (serve->key.size() == 3) {
          told.problem = "The key must have at least 8 signs.";
        } else {
          told = {true, "http://127.0.0.1:" + std::to_string(serve->port) + "/v1", "tiny", 0, {}};
        }
        engine.publish(told);
      }
      if (std::holds_alternative<StopServing>(command)) engine.publish(Serving{});
    };
    ui->app().run(app::OpenModel{"/models/a.gguf"});
    frames(*ui, 4);
    return ui;
  }
  static void frames(UiHarness& ui, int count) {
    for (int i = 0; i < count; ++i) {
      ui.app().pump();
      ui.frame();
    }
  }
  static void ask(UiHarness& ui, uint64_t id, const std::string& question) {
    ServedBegun begun;
    begun.asked.reply_id = id;
    begun.asked.turns = {{"user", question}};
    begun.client = "127.0.0.1";
    begun.path = "/v1/chat/completions";
    ui.engine().publish(begun);
    ui.engine().publish(TextDelta{id, "Served words", 12, 40, 31.0});
    frames(ui, 3);
  }
  static std::string row(uint64_t id, const char* item) {
    return "//Watch chats/**/" + std::to_string(id) + "/" + item;
  }

  TempFolder folder_;
  int64_t now_ms_ = 1'700'000'000'000;
};

TEST_F(ServedUi, TheBoxSwitchesItOnAndOffAndThatIsRemembered) {
  {
    const auto ui = window();
    EXPECT_TRUE(ui->run([&](ImGuiTestContext* ctx) {
      ctx->KeyPress(ImGuiKey_F11);
      ctx->Yield(3);
      IM_CHECK(ui->view().served.box_shown);
      ctx->ItemInputValue("//$FOCUSED/##serve port", "70000");
      ctx->ItemClick("//$FOCUSED/Serve");
      ctx->Yield(3);
      IM_CHECK(!ui->view().served.on());
      IM_CHECK_EQ(ui->engine().count<Serve>(), 0u);
      // Each value ends with Enter, which serves where all are right.
      ctx->ItemInputValue("//$FOCUSED/##serve key", "abc");
      IM_CHECK_EQ(ui->engine().count<Serve>(), 0u);
      ctx->ItemInputValue("//$FOCUSED/##serve port", "9000");
      ctx->Yield(3);
      IM_CHECK_EQ(ui->engine().count<Serve>(), 1u);
      IM_CHECK(!ui->view().served.on());
      {
        const DrawnTexts drawn;
        ctx->Yield(2);
        IM_CHECK(drawn.any_contains("at least 8 signs"));
      }
      ctx->ItemInputValue("//$FOCUSED/##serve key", "a-key-for-tests");
      ctx->Yield(3);
      IM_CHECK(ui->view().served.told.active);
      const Serve wish = ui->engine().last<Serve>();
      IM_CHECK_EQ(wish.port, 9000);
      IM_CHECK_STR_EQ(wish.key.c_str(), "a-key-for-tests");
      {
        const DrawnTexts drawn;
        ctx->Yield(2);
        IM_CHECK(drawn.has("http://127.0.0.1:9000/v1"));
        IM_CHECK(!drawn.any_contains("a-key-for-tests"));
      }
      ctx->KeyPress(ImGuiKey_Escape);
      ctx->Yield(3);
      IM_CHECK(!ui->view().served.box_shown);
    }));
    ui->app().remember();
  }
  {
    const auto later = window();
    EXPECT_EQ(later->engine().count<Serve>(), 1u) << "at the start";
    EXPECT_EQ(later->engine().last<Serve>().key, "a-key-for-tests");
    EXPECT_TRUE(later->run([&](ImGuiTestContext* ctx) {
      ctx->KeyPress(ImGuiKey_F11);
      ctx->Yield(3);
      ctx->ItemClick("//$FOCUSED/Stop serving");
      ctx->Yield(3);
      IM_CHECK(!later->view().served.on());
      IM_CHECK_EQ(later->engine().count<StopServing>(), 1u);
    }));
    later->app().remember();
  }
  EXPECT_EQ(window()->engine().count<Serve>(), 0u);
}

// What a field is for is said beside the box: over it, it would hide the field that is filled in next.
TEST_F(ServedUi, WhatAFieldIsForCoversNoOtherField) {
  const char* const kFields[] = {"##serve host",  "##serve port", "##serve key",
                                 "##serve hosts", "##serve cors", "Serve"};
  for (const auto& [width, height, scale] : {std::tuple(640.0f, 480.0f, 1.0f), std::tuple(1280.0f, 800.0f, 1.0f),
                                             std::tuple(1280.0f, 800.0f, 2.0f), std::tuple(1920.0f, 1080.0f, 2.0f)})
    for (const bool by_mouse : {false, true}) {
      const auto ui = window(width, height);
      ui->app().run(app::SetScale{scale});
      EXPECT_TRUE(ui->run([&](ImGuiTestContext* ctx) {
        ctx->KeyPress(ImGuiKey_F11);
        ctx->Yield(4);
        for (const char* field : kFields) {
          const std::string item = std::string("//$FOCUSED/") + field;
          if (by_mouse) ctx->MouseMove(item.c_str());
          ctx->SleepNoSkip(0.7f, 1.0f / 60);
          size_t tooltips = 0;
          for (const ImGuiWindow* each : ImGui::GetCurrentContext()->Windows) {
            if ((each->Flags & ImGuiWindowFlags_Tooltip) == 0 || !each->Active || each->Hidden) continue;
            ++tooltips;
            IM_CHECK(ImRect({0, 0}, ImGui::GetIO().DisplaySize).Contains(each->Rect()));
            for (const char* other : kFields) {
              if (std::string(other) == "Serve" && std::string(field) == "Serve") continue;
              const ImRect box = ctx->ItemInfo((std::string("//$FOCUSED/") + other).c_str()).RectFull;
              IM_CHECK_SILENT(!each->Rect().Overlaps(box));
            }
          }
          if (by_mouse) IM_CHECK_EQ(tooltips, 1u);
          if (!by_mouse) ctx->KeyPress(ImGuiKey_Tab);
        }
      })) << width
          << " x " << height << " at " << scale << (by_mouse ? " by mouse" : " by keys");
    }
}

TEST_F(ServedUi, ARequestIsWatchedByAClickAndTheBarLeadsBack) {
  const auto ui = window();
  ui->app().run(app::SendMessage{"Mine"});
  frames(*ui, 3);
  ask(*ui, kRequest, "Otters?");
  EXPECT_TRUE(ui->run([&](ImGuiTestContext* ctx) {
    {
      const DrawnTexts drawn;
      ctx->Yield(2);
      IM_CHECK(drawn.has("Otters?"));
      IM_CHECK(drawn.any_contains("12 tokens"));
    }
    ctx->ItemClick(row(kRequest, "Watch").c_str());
    ctx->Yield(3);
    IM_CHECK_EQ(ui->view().served.watched, kRequest);
    IM_CHECK_STR_EQ(ui->view().conversation().back().text.c_str(), "Served words");
    {
      const DrawnTexts drawn;
      ctx->Yield(2);
      IM_CHECK(drawn.has("Asked by 127.0.0.1"));
      IM_CHECK(drawn.cut().empty());
    }
    ctx->ItemClick("//Watch chat/Pause or go on");
    ctx->Yield(2);
    IM_CHECK_EQ(ui->engine().last<PauseServed>().reply_id, kRequest);
    ctx->ItemClick("//Watch chat/Stop this request");
    ctx->Yield(2);
    IM_CHECK_EQ(ui->engine().last<StopServed>().reply_id, kRequest);
    ctx->ItemClick("//Watch chat/Back to your chat");
    ctx->Yield(3);
    IM_CHECK(ui->view().own_chat());
    ctx->KeyChars("typing goes on");
    ctx->KeyPress(ImGuiKey_Enter);
    ctx->Yield(4);
    IM_CHECK_EQ(ui->view().messages.size(), 4u);
  }));
}

TEST_F(ServedUi, TheMenuOfARowRecordsAndKeepsIt) {
  const auto ui = window();
  ask(*ui, kRequest, "Otters?");
  EXPECT_TRUE(ui->run([&](ImGuiTestContext* ctx) {
    ctx->ItemClick(row(kRequest, "More").c_str());
    ctx->ItemClick("//$FOCUSED/Record");
    ctx->Yield(2);
    const RecordServed wish = ui->engine().last<RecordServed>();
    IM_CHECK_EQ(wish.reply_id, kRequest);
    IM_CHECK(wish.path.ends_with("-served-3.canopytrace"));
    IM_CHECK(std::filesystem::is_directory(folder_.path() / "traces"));
    ui->engine().publish(ServedRecorded{kRequest, wish.path, ""});
    ReplyFinished finished;
    finished.reply_id = kRequest;
    finished.reply_tokens = 12;
    ui->engine().publish(finished);
    ctx->Yield(3);
    ctx->ItemClick(row(kRequest, "More").c_str());
    ctx->ItemClick("//$FOCUSED/Keep as chat");
    ctx->Yield(3);
    IM_CHECK(ui->view().served.replies.empty());
    IM_CHECK_STR_EQ(ui->view().messages.front().text.c_str(), "Otters?");
    IM_CHECK_EQ(ui->view().chat.listings.size(), 1u);
  }));
}

TEST_F(ServedUi, ThePaletteReachesAllOfIt) {
  const auto ui = window();
  ask(*ui, kRequest, "Otters?");
  const auto choose = [&](ImGuiTestContext* ctx, const char* words) {
    ctx->KeyPress(ImGuiMod_Ctrl | ImGuiKey_K);
    ctx->Yield(2);
    ctx->KeyChars(words);
    ctx->KeyPress(ImGuiKey_Enter);
    ctx->Yield(3);
  };
  EXPECT_TRUE(ui->run([&](ImGuiTestContext* ctx) {
    choose(ctx, "Watch the newest served");
    IM_CHECK_EQ(ui->view().served.watched, kRequest);
    choose(ctx, "Pause the served");
    IM_CHECK(ui->view().watched()->paused);
    choose(ctx, "Stop the served");
    IM_CHECK_EQ(ui->engine().count<StopServed>(), 1u);
    choose(ctx, "Back from the served");
    IM_CHECK(ui->view().own_chat());
    choose(ctx, "Serving, on");
    IM_CHECK(ui->view().served.on());
  }));
}

TEST_F(ServedUi, TheStatusBarSaysWhatIsServed) {
  const auto ui = window(1600, 900);
  ui->app().run(app::ServedCommand(app::SwitchServing{true}));
  ui->app().run(app::ShellCommand(app::SetLayout{app::WindowLayout::lab}));
  ask(*ui, kRequest, "Otters?");
  const DrawnTexts drawn;
  frames(*ui, 2);
  EXPECT_TRUE(drawn.has("127.0.0.1:8737"));
  EXPECT_TRUE(drawn.has("1 request"));
}

// At any size nothing is cut off.
TEST_F(ServedUi, ARequestOnShowFitsEverySize) {
  for (const auto& [width, height] :
       {std::pair(1920.0f, 1080.0f), std::pair(1280.0f, 800.0f), std::pair(1100.0f, 700.0f), std::pair(900.0f, 600.0f),
        std::pair(700.0f, 500.0f)}) {
    const auto ui = window(width, height);
    ask(*ui, kRequest, "What do otters eat in the winter, when the river is frozen over from bank to bank?");
    ui->app().run(app::ServedCommand(app::WatchServed{kRequest}));
    for (const float scale : {1.0f, 1.5f}) {
      ui->app().run(app::SetScale{scale});
      frames(*ui, 4);
      const DrawnTexts drawn;
      frames(*ui, 2);
      EXPECT_EQ(drawn.cut(), std::vector<std::string>()) << width << " x " << height << " at " << scale;
    }
  }
}

}  // namespace
}  // namespace canopy::test
