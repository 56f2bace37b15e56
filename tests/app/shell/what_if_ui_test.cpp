// "What if" in the whole application: another device, a calibration from elsewhere, the trees of another device, the
// race, and text that fits at every size.

#include <gtest/gtest.h>

#include "app/state/words.h"
#include "engine/base/mapped_file.h"
#include "engine/speculation/calibration.h"
#include "tests/app/support/await_what_if.h"
#include "tests/app/support/drawn_texts.h"
#include "tests/app/support/ui_harness.h"
#include "tests/base/temp_folder.h"

namespace canopy::test {
namespace {

using app::WindowLayout;

class WhatIfUi : public testing::Test {
 protected:
  std::unique_ptr<UiHarness> demo(float width = 1280, float height = 800) {
    app::AppSettings settings;
    settings.layout = WindowLayout::what_if;
    settings.saved.reduced_motion = false;
    auto ui = std::make_unique<UiHarness>(settings, width, height);
    ui->app().run(app::OpenModel{CANOPY_SOURCE_DIR "/assets/demos/code.canopytrace"});
    EXPECT_TRUE(await_what_if(ui->app()));
    for (int i = 0; i < 4; ++i) ui->frame();
    return ui;
  }
};

TEST_F(WhatIfUi, TheDemoIsComputedForThisMachineAndOthers) {
  const auto ui = demo();
  const app::WhatIfAnswer& answer = ui->view().what_if.answer;
  ASSERT_EQ(answer.there.size(), 4u);
  EXPECT_EQ(answer.there[0]->times, app::TimesFrom::recorded);
  for (const auto& each : answer.there) {
    EXPECT_EQ(each->problem, "");
    EXPECT_GT(each->run.tokens_per_second(), 0);
    EXPECT_GT(each->summary.ratio, 0);
    EXPECT_NE(each->summary.verdict, "");
    EXPECT_EQ(each->run.tokens, answer.there[0]->run.tokens);
  }
  EXPECT_EQ(answer.there[3]->times, app::TimesFrom::predicted);
  EXPECT_GT(answer.there[3]->curve.size(), 5u);
}

TEST_F(WhatIfUi, ANameChoosesAnotherDevice) {
  const auto ui = demo();
  EXPECT_TRUE(ui->run([&](ImGuiTestContext* ctx) {
    ctx->ItemClick("//Devices/$$1/Another device");
    ctx->Yield(2);
    ctx->ItemClick("//$FOCUSED/b580");
    ctx->Yield(2);
    IM_CHECK_STR_EQ(ui->view().what_if.devices[0].c_str(), "b580");
  }));
  ASSERT_TRUE(await_what_if(ui->app()));
  EXPECT_EQ(ui->view().what_if.answer.there[1]->name, "Arc B580");
}

// Compare measures here, whatever device the recording beside it speaks of.
TEST_F(WhatIfUi, TheBarOfComparisonsNamesTheDeviceThatMeasures) {
  const auto ui = demo(1800, 1000);
  ui->engine().publish(small_model());
  ui->app().pump();
  EXPECT_TRUE(ui->run([&](ImGuiTestContext* ctx) {
    ctx->ItemClick("//Devices/$$3/Show its trees");
    for (int frame = 0; frame < 2000 && ui->view().shell.layout != WindowLayout::watch; ++frame) ctx->Yield();
    DrawnTexts drawn;
    ctx->Yield(2);
    IM_CHECK(drawn.has("Predicted"));
    ui->app().run(app::ShellCommand(app::ShowPage{app::WindowPage::compare}));
    ctx->Yield(2);
    drawn.clear();
    ctx->Yield(2);
    IM_CHECK(!drawn.has("Predicted"));
    IM_CHECK(!drawn.has("H100 SXM"));  // the file of the recording may have it in its name
  }));
}

TEST_F(WhatIfUi, TheTreesOfAnotherDeviceAreARecordingThatSaysWhereItsTimesComeFrom) {
  const auto ui = demo();
  ASSERT_TRUE(ui->view().what_if.answer.there[3]->run.exact) << ui->view().what_if.answer.there[3]->run.why_not;
  const std::string text = ui->view().rounds.log->replies()[0].text;
  EXPECT_TRUE(ui->run([&](ImGuiTestContext* ctx) {
    ctx->ItemClick("//Devices/$$3/Show its trees");
    // It is written beside the window.
    for (int frame = 0; frame < 2000 && ui->view().shell.layout != WindowLayout::watch; ++frame) ctx->Yield();
    IM_CHECK(ui->view().shell.layout == WindowLayout::watch);
    IM_CHECK_STR_EQ(std::string(ui->view().rounds.log->times()).c_str(), "predicted");
    IM_CHECK(ui->view().rounds.log->origin().find("H100") != std::string::npos);
    IM_CHECK(ui->view().replay.origin().device.find("(predicted)") != std::string::npos);
    IM_CHECK(ui->view().rounds.log->replies()[0].text == text);
  }));
  EXPECT_TRUE(ui->view().cards.empty());
  // The window says so, and nothing in it calls these times recorded, replayed or those of this place.
  ui->app().run(app::RoundsCommand(app::ShowRound{5}));
  for (int i = 0; i < 4; ++i) ui->frame();
  const DrawnTexts drawn;
  ui->frame();
  EXPECT_TRUE(drawn.has("Predicted"));
  EXPECT_TRUE(drawn.has("Not recorded there: predicted"));
  EXPECT_TRUE(drawn.any_contains("ms predicted"));
  EXPECT_FALSE(drawn.any_contains("Replayed"));
  EXPECT_FALSE(drawn.any_contains("Recorded 20"));
  EXPECT_FALSE(drawn.any_contains(", here"));
  EXPECT_FALSE(drawn.any_contains("as if on"));
}

TEST_F(WhatIfUi, ACalibrationThatIsDroppedOnTheWindowBecomesADevice) {
  const auto ui = demo();
  const TempFolder folder;
  const std::filesystem::path good = folder.path() / "friend.json";
  CostTable table;
  for (uint32_t width = 1; width <= 32; ++width) table.set_verify(width, 100, 3 + 0.01 * width);
  table.set_draft(1, 100, 0.5);
  write_calibration(good, {.driver = "somebody's driver"}, table);
  ui->app().open_paths({good.string()});
  ASSERT_TRUE(await_what_if(ui->app()));
  ASSERT_EQ(ui->view().what_if.answer.there.size(), 5u);
  const app::WhatIfThere& there = *ui->view().what_if.answer.there[1];
  EXPECT_EQ(there.name, "friend");
  EXPECT_EQ(there.times, app::TimesFrom::measured_elsewhere);
  EXPECT_EQ(there.problem, "");
  // One that lies is named on its card, and the others stand.
  std::string forged = read_small_file(good, 1 << 20);
  forged.replace(forged.find("3.01"), 4, "0.01");
  ui->app().open_paths({folder.write("forged.json", forged).string()});
  ASSERT_TRUE(await_what_if(ui->app()));
  const app::WhatIfAnswer& answer = ui->view().what_if.answer;
  ASSERT_EQ(answer.there.size(), 6u);
  EXPECT_NE(answer.there[2]->problem.find("forged.json"), std::string::npos) << answer.there[2]->problem;
  EXPECT_EQ(answer.there[5]->problem, "");
  for (int i = 0; i < 3; ++i) ui->frame();
  EXPECT_TRUE(ui->run([&](ImGuiTestContext* ctx) {
    ctx->ItemClick("//Devices/$$1/Remove calibration");
    ctx->Yield(2);
    IM_CHECK_EQ(ui->view().what_if.calibrations.size(), 1u);
  }));
}

TEST_F(WhatIfUi, ADeviceOfOnesOwnIsDescribedAndBadFiguresAreRefused) {
  const auto ui = demo();
  ui->app().run(app::WhatIfCommand(app::DescribeDevice{}));
  DrawnTexts drawn;
  EXPECT_TRUE(ui->run([&](ImGuiTestContext* ctx) {
    ctx->Yield(3);
    ctx->ItemInputValue("//$FOCUSED/##own name", "My GPU");  // ends with Enter, which keeps
    drawn.clear();
    ctx->Yield(2);
    IM_CHECK(drawn.any_contains("Its memory is no number"));
    IM_CHECK(ui->view().what_if.own.empty());
    ctx->ItemInputValue("//$FOCUSED/##own memory", "672");
    ctx->ItemInputValue("//$FOCUSED/##own arithmetic", "31,5");
    ctx->ItemInputValue("//$FOCUSED/##own dispatch", "1.3");
    ctx->Yield(2);
    IM_CHECK(!ui->view().what_if.describing);
    IM_CHECK_EQ(ui->view().what_if.own.size(), 1u);
    IM_CHECK_EQ(ui->view().what_if.own[0].tflops, 31.5);
  }));
  ASSERT_TRUE(await_what_if(ui->app()));
  EXPECT_EQ(ui->view().what_if.answer.there.back()->name, "My GPU");
}

// A sparse recording that the loaded pair makes exact: how far that is stands where its button was, with its end.
TEST_F(WhatIfUi, MakingItExactTellsItsProgressAndIsCancelled) {
  const auto ui = demo(900, 600);
  ui->engine().script = [](ScriptedEngine& engine, const Command& command) {
    if (std::holds_alternative<DensifyTrace>(command)) engine.publish(DensifyProgress{300, 400});
    if (std::holds_alternative<CancelDensify>(command)) engine.publish(TraceDensified{"", 0, "", true});
  };
  ModelReady model = small_model();
  model.drafter = "drafter.gguf";
  ui->engine().publish(model);
  ui->app().pump();
  ui->app().run(app::WhatIfCommand(app::MakeDense{}));
  ui->app().pump();
  DrawnTexts drawn;
  EXPECT_TRUE(ui->run([&](ImGuiTestContext* ctx) {
    ctx->Yield(2);
    IM_CHECK(drawn.has("Guessing behind every token, 75%"));
    ctx->ItemClick("//What if/Cancel");
    ctx->Yield(2);
    IM_CHECK_EQ(ui->engine().count<CancelDensify>(), 1u);
    IM_CHECK(!ctx->ItemExists("//What if/Cancel"));
  }));
  EXPECT_TRUE(ui->view().cards.empty());
}

// Nobody has written anything before it was started; no lane is shown at its end before it is there.
TEST_F(WhatIfUi, TheRaceOpensAtItsFirstFrame) {
  const auto ui = demo();
  const app::Race race = race_of(ui->view().what_if.answer);
  ASSERT_FALSE(race.empty());
  const std::string all = app::grouped(race.lanes.front().tokens);
  DrawnTexts drawn;
  ui->frame();
  EXPECT_TRUE(drawn.has(app::milliseconds(0)));
  EXPECT_TRUE(drawn.has("0"));
  EXPECT_FALSE(drawn.has(all)) << "a finished row";
  EXPECT_FALSE(ui->app().moving());
}

TEST_F(WhatIfUi, TheRaceRunsAndEnds) {
  const auto ui = demo();
  EXPECT_TRUE(ui->run([&](ImGuiTestContext* ctx) {
    ctx->ItemClick("//Race/Begin the race");
    ctx->Yield(2);
    IM_CHECK(ui->app().moving());
    ctx->ItemClick("//Race/Run the race");
    ctx->SleepNoSkip(0.5f, 1.0f / 30);
    IM_CHECK(!ui->app().moving());
  }));
}

TEST_F(WhatIfUi, ItsTextsStayInTheirPlaces) {
  for (const auto& [width, height] :
       {std::pair(1280.0f, 800.0f), {900.0f, 600.0f}, {960.0f, 540.0f}, {1920.0f, 1080.0f}, {640.0f, 480.0f}}) {
    const auto ui = demo(width, height);
    DrawnTexts texts;
    ui->frame();
    EXPECT_GT(texts.all().size(), 20u);
    const auto none = std::vector<std::string>();
    EXPECT_EQ(texts.cut(), none) << width << " x " << height;
    EXPECT_EQ(texts.overlapping(), none) << width << " x " << height;
  }
}

// What is said of a chart is read in a few lines, not in one across the window.
TEST_F(WhatIfUi, WhatIsSaidOfAChartHasTheWidthOfATooltip) {
  const auto ui = demo(1280, 800);
  EXPECT_TRUE(ui->run([&](ImGuiTestContext* ctx) {
    const ImGuiWindow* cards = ImGui::FindWindowByName("Devices");
    IM_CHECK(cards != nullptr);
    ctx->MouseMoveToPos({cards->Pos.x + 160, cards->Pos.y + 200});
    ctx->Yield(3);
    size_t tooltips = 0;
    for (const ImGuiWindow* each : ImGui::GetCurrentContext()->Windows) {
      if ((each->Flags & ImGuiWindowFlags_Tooltip) == 0 || !each->Active || each->Hidden) continue;
      ++tooltips;
      IM_CHECK_LT(each->Size.x, 460.0f);
    }
    IM_CHECK_EQ(tooltips, 1u);
  }));
}

}  // namespace
}  // namespace canopy::test
