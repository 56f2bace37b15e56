// The timeline and its controls under Dear ImGui's Test Engine, with scripted rounds and with a trace.

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/app/support/drawn_texts.h"
#include "tests/app/support/ui_harness.h"
#include "tests/base/temp_folder.h"
#include "tests/trace/trace_builder.h"

namespace canopy::test {
namespace {

using namespace app;  // NOLINT: the whole file is about it

/// The application with a model and a reply being written, with some rounds.
class LiveUi {
 public:
  explicit LiveUi(int rounds = 12) : ui({}, 1600, 1000) {
    ui.engine().script = [](ScriptedEngine& engine, const Command& command) {
      if (std::holds_alternative<LoadModel>(command)) engine.publish(small_model());
    };
    ui.app().run(OpenModel{"/models/SmolLM2-135M-Instruct.Q4_1.gguf"});
    ui.app().pump();
    ui.app().run(SendMessage{"Hello"});
    builder_.begin();
    write(rounds);
    ui.app().pump();
  }
  /// Publishes that many rounds of the reply.
  void write(int rounds) {
    const uint64_t id = ui.engine().last<Generate>().reply_id;
    for (int i = 0; i < rounds; ++i)
      ui.engine().publish(RoundFinished{id, std::make_shared<const RoundRecord>(builder_.any(24)), 0, 0, {}, false});
  }
  const RoundsState& rounds() const { return ui.view().rounds; }
  size_t shown() const { return rounds().playback.shown; }
  PlayState state() const { return rounds().playback.state; }

  UiHarness ui;

 private:
  TraceBuilder builder_;
};

/// The middle of a round's bar on the screen.
ImVec2 at_round(ImGuiTestContext* ctx, size_t round, size_t rounds) {
  const ImRect plot = ctx->ItemInfo("//Timeline/Rounds").RectFull;
  const float pitch = std::min(15.0f, plot.GetWidth() / static_cast<float>(rounds));
  return {plot.Min.x + pitch * (static_cast<float>(round) + 0.4f), plot.GetCenter().y};
}

// gui.md, criterion 13
TEST(TimelineUi, APauseFreezesTheViewWhileTheEngineGoesOn) {
  LiveUi live;
  EXPECT_TRUE(live.ui.run([&](ImGuiTestContext* ctx) {
    ctx->Yield(2);
    IM_CHECK_EQ(live.shown(), 11u);
    ctx->ItemClick("//Timeline/Pause or go on");
    for (int i = 0; i < 10; ++i) {
      live.write(3);
      ctx->Yield(2);
      IM_CHECK_EQ(live.shown(), 11u);
      IM_CHECK_EQ(live.rounds().log->rounds(), 15u + 3 * static_cast<size_t>(i));
    }
    ctx->ItemClick("//Timeline/Follow");
    ctx->Yield(2);
    IM_CHECK_EQ(live.shown(), 41u);
    live.write(1);
    ctx->Yield(2);
    IM_CHECK_EQ(live.shown(), 42u);
  }));
  EXPECT_EQ(live.ui.engine().count<StopReply>(), 0u) << "the engine never waits";
}

/// With room for the strip or for all controls, the strip and the buttons stay.
TEST(TimelineUi, ANarrowPanelKeepsTheStrip) {
  LiveUi live;
  EXPECT_TRUE(live.ui.run([&](ImGuiTestContext* ctx) {
    live.ui.resize(480, 640);
    ctx->Yield(6);
    IM_CHECK(ctx->ItemExists("//Timeline/Rounds"));
    IM_CHECK(ctx->ItemExists("//Timeline/Pause or go on"));
    IM_CHECK_LE(ctx->ItemInfo("//Timeline/Rounds").RectFull.Max.x, 480.0f);
  }));
}

/// A reply that has ended is not live, although its last round is still followed.
TEST(TimelineUi, LiveEndsWithTheReply) {
  LiveUi live;
  EXPECT_TRUE(live.ui.run([&](ImGuiTestContext* ctx) {
    const auto says = [&](const char* words) {
      const DrawnTexts drawn;
      ctx->Yield(2);
      return drawn.has(words);
    };
    IM_CHECK(says("live"));
    ReplyFinished end;
    end.reply_id = live.ui.engine().last<Generate>().reply_id;
    live.ui.engine().publish(end);
    ctx->Yield(2);
    IM_CHECK(!says("live"));
    IM_CHECK(says("newest"));
  }));
}

// gui.md, criterion 13
TEST(TimelineUi, StepsByButtonAndByKey) {
  LiveUi live;
  EXPECT_TRUE(live.ui.run([&](ImGuiTestContext* ctx) {
    ctx->Yield(2);
    ctx->ItemClick("//Timeline/Previous pass");
    ctx->ItemClick("//Timeline/Previous pass");
    IM_CHECK_EQ(live.shown(), 9u);
    ctx->ItemClick("//Timeline/Next pass");
    IM_CHECK_EQ(live.shown(), 10u);
    ctx->ItemClick("//Timeline/First pass");
    IM_CHECK_EQ(live.shown(), 0u);
    ctx->KeyPress(ImGuiKey_F8);
    ctx->Yield();
    IM_CHECK_EQ(live.shown(), 1u);
    // The timeline has the keyboard focus now.
    ctx->KeyPress(ImGuiKey_RightArrow);
    ctx->Yield();
    IM_CHECK_EQ(live.shown(), 2u);
    ctx->KeyPress(ImGuiKey_End);
    ctx->Yield();
    IM_CHECK_EQ(live.shown(), 11u);
    ctx->KeyPress(ImGuiKey_LeftArrow);
    ctx->Yield();
    IM_CHECK_EQ(live.shown(), 10u);
    ctx->KeyPress(ImGuiKey_Home);
    ctx->Yield();
    IM_CHECK_EQ(live.shown(), 0u);
  }));
}

// gui.md, criterion 13
TEST(TimelineUi, ScrubsByClickAndByDrag) {
  LiveUi live(30);
  EXPECT_TRUE(live.ui.run([&](ImGuiTestContext* ctx) {
    ctx->Yield(2);
    for (const size_t round : {3u, 17u, 29u, 0u}) {
      ctx->MouseMoveToPos(at_round(ctx, round, 30));
      ctx->MouseClick();
      ctx->Yield();
      IM_CHECK_EQ(live.shown(), round);
      IM_CHECK(live.state() == PlayState::paused);
    }
    ctx->MouseMoveToPos(at_round(ctx, 5, 30));
    ctx->MouseDown();
    for (size_t round = 5; round <= 25; round += 5) {
      ctx->MouseMoveToPos(at_round(ctx, round, 30));
      ctx->Yield(2);
      IM_CHECK_EQ(live.shown(), round);
    }
    ctx->MouseUp();
  }));
}

// gui.md, criterion 13
TEST(TimelineUi, TheZoomIsKeptWhenTimeGoesOn) {
  LiveUi live(60);
  EXPECT_TRUE(live.ui.run([&](ImGuiTestContext* ctx) {
    ctx->Yield(2);
    const ImVec2 spot = at_round(ctx, 20, 60);
    ctx->MouseMoveToPos(spot);
    ctx->MouseClick();
    ctx->MouseWheelY(4);
    ctx->Yield(2);
    const auto round_at_offset = [&](float pixels) {
      ctx->MouseMoveToPos({spot.x + pixels, spot.y});
      ctx->MouseClick();
      ctx->Yield(2);
      return live.shown();
    };
    IM_CHECK_EQ(round_at_offset(0), 20u);
    const size_t beside = round_at_offset(60);
    IM_CHECK_LT(beside, 23u);  // four rounds' worth of pixels before the zoom
    IM_CHECK_EQ(round_at_offset(0), 20u);
    ctx->ItemClick("//Timeline/Pause or go on");
    live.write(5);
    ctx->Yield(3);
    ctx->ItemClick("//Timeline/Pause or go on");
    IM_CHECK_EQ(round_at_offset(60), beside);
  }));
}

// gui.md, criterion 14
TEST(TimelineUi, SlowMotionPlaysPhaseAfterPhase) {
  LiveUi live(4);
  EXPECT_TRUE(live.ui.run([&](ImGuiTestContext* ctx) {
    ctx->Yield(2);
    ctx->ItemClick("//Timeline/First pass");
    ctx->ItemClick("//Timeline/Slow motion");
    size_t before = 0, steps = 0;
    for (int i = 0; i < 3000 && live.ui.app().moving(); ++i) {
      const Playback& playback = live.rounds().playback;
      const size_t now = playback.shown * kPhases + static_cast<size_t>(playback.phase);
      IM_CHECK_GE(now, before);
      steps += now != before;
      before = now;
      ctx->Yield();
    }
    IM_CHECK(!live.ui.app().moving());
    IM_CHECK_EQ(live.shown(), 3u);
    IM_CHECK_GE(steps, 10u);
  }));
}

TEST(TimelineUi, TheSpeedSliderLeavesLiveAndReturns) {
  LiveUi live;
  EXPECT_TRUE(live.ui.run([&](ImGuiTestContext* ctx) {
    ctx->Yield(2);
    const ImRect slider = ctx->ItemInfo("//Timeline/##Speed").RectFull;
    ctx->MouseMoveToPos({slider.Min.x + 10, slider.GetCenter().y});
    ctx->MouseClick();
    ctx->Yield();
    IM_CHECK(live.state() == PlayState::playing);
    IM_CHECK_LT(live.rounds().playback.speed, 0.2);
    ctx->MouseMoveToPos({slider.Max.x - 4, slider.GetCenter().y});
    ctx->MouseClick();
    ctx->Yield();
    IM_CHECK(live.state() == PlayState::following);
  }));
}

/// The application with a trace on the disk.
class TraceUi {
 public:
  TraceUi() : ui({}, 1600, 1000) {
    TraceBuilder builder;
    builder.write(file(), 20);
    folder.write("broken.canopytrace", "CanopyTr, or not");
  }
  std::string file() const { return (folder.path() / "run.canopytrace").string(); }
  TempFolder folder;
  UiHarness ui;
};

TEST(TimelineUi, ATraceOpensByAnyWayAModelDoes) {
  TraceUi trace;
  EXPECT_TRUE(trace.ui.run([&](ImGuiTestContext* ctx) {
    ctx->Yield(2);
    trace.ui.app().run(OpenModel{trace.file()});  // a dropped file, the dialog and the path box post the same command
    ctx->Yield(3);
    IM_CHECK_EQ(trace.ui.view().rounds.log->rounds(), 20u);
    IM_CHECK(trace.ui.view().rounds.playback.state == PlayState::paused);
    ctx->ItemClick("//Timeline/Next pass");
    IM_CHECK_EQ(trace.ui.view().rounds.playback.shown, 1u);
    ctx->ItemClick("//Timeline/Close recording");
    ctx->Yield(2);
    IM_CHECK(trace.ui.view().rounds.trace_path.empty());
  }));
  EXPECT_EQ(trace.ui.engine().count<LoadModel>(), 0u);
}

TEST(TimelineUi, ABadTraceIsACardAndKeepsWhatThereWas) {
  LiveUi live;
  const TempFolder folder;
  const auto bad = folder.write("broken.canopytrace", "CanopyTr, or not");
  EXPECT_TRUE(live.ui.run([&](ImGuiTestContext* ctx) {
    ctx->Yield(2);
    live.ui.app().run(OpenModel{bad.string()});
    ctx->Yield(2);
    IM_CHECK_EQ(live.ui.view().cards.size(), 1u);
    IM_CHECK(live.ui.view().cards[0].detail.find("broken.canopytrace") != std::string::npos);
    IM_CHECK_EQ(live.rounds().log->rounds(), 12u);
    IM_CHECK_EQ(live.ui.view().messages.size(), 2u);
    IM_CHECK(live.ui.view().model_state == ModelState::ready);
  }));
}

// gui.md, criterion 22
TEST(TimelineUi, APlayedTraceComesToRest) {
  TraceUi trace;
  EXPECT_TRUE(trace.ui.run([&](ImGuiTestContext* ctx) {
    trace.ui.app().run(RoundsCommand(OpenTrace{trace.file()}));
    ctx->Yield(2);
    IM_CHECK(!trace.ui.app().moving());
    ctx->ItemClick("//Timeline/Pause or go on");
    IM_CHECK(trace.ui.app().moving());
    for (int i = 0; i < 200 && trace.ui.app().moving(); ++i) ctx->Yield();
    IM_CHECK(!trace.ui.app().moving());
    IM_CHECK_EQ(trace.ui.view().rounds.playback.shown, 19u);
  }));
}

// gui.md, criterion 25: open, step and play without a mouse.
TEST(TimelineUi, KeysAloneDoAll) {
  TraceUi trace;
  EXPECT_TRUE(trace.ui.run([&](ImGuiTestContext* ctx) {
    trace.ui.app().run(RoundsCommand(OpenTrace{trace.file()}));
    ctx->Yield(2);
    ctx->KeyPress(ImGuiKey_F8, 3);
    ctx->Yield();
    IM_CHECK_EQ(trace.ui.view().rounds.playback.shown, 3u);
    ctx->KeyPress(ImGuiKey_F7);
    ctx->Yield();
    IM_CHECK_EQ(trace.ui.view().rounds.playback.shown, 2u);
    ctx->KeyPress(ImGuiKey_F6);
    ctx->Yield();
    IM_CHECK(trace.ui.view().rounds.playback.state == PlayState::playing);
    ctx->KeyPress(ImGuiKey_F9);
    ctx->Yield();
    IM_CHECK(trace.ui.view().rounds.playback.slow_motion);
  }));
}

}  // namespace
}  // namespace canopy::test
