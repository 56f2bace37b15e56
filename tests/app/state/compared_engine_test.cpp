// The window's state with a real engine thread: a comparison from its command to its verdict and file, and a sweep
// whose window is closed in the middle.

#include <gtest/gtest.h>

#include <thread>

#include "app/state/view_model.h"
#include "engine/bench/sweep_file.h"
#include "engine/bench/sweep_journal.h"
#include "engine/bench/sweep_summary.h"
#include "tests/base/temp_folder.h"
#include "tests/session/engine_thread_rig.h"

namespace canopy::test {
namespace {

class ComparedEngine : public EngineThreadTest {
 protected:
  app::ComparisonState& state() { return view_.comparison; }

  void open() {
    start();
    LoadModel load = tiny();
    load.drafter = golden_folder() / "tiny-qwen3-dflash-b8";
    view_.model_state = app::ModelState::loading;
    engine_->post(load);
    pump_until([&] { return view_.model_state == app::ModelState::ready; });
    state().bundled = {{"a", "code", {{"user", "def main():\n"}}}, {"b", "prose", {{"user", "The sky"}}}};
    view_.sweep_file = file();
  }
  std::string file() const { return folder_.path() / "measured.json"; }
  void run(const app::ComparisonCommand& command) {
    app::Effects effects = update(view_, app::UiCommand(command));
    for (Command& each : effects.engine) engine_->post(std::move(each));
    if (effects.sweep) end_read(state(), app::read_for(*effects.sweep, {folder_.path().string(), "", ""}));
  }
  template <class F>
  void pump_until(F&& done) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!done()) {
      ASSERT_LT(std::chrono::steady_clock::now(), deadline);
      for (const Event& event : engine_->poll()) update(view_, event);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  static app::SweepSetup small_sweep(uint32_t repeats) {
    app::SweepSetup setup;
    setup.adaptive = false;
    setup.budgets = {4};
    setup.repeats = repeats;
    setup.max_tokens = 12;
    return setup;
  }

  app::ViewModel view_;
  TempFolder folder_;
};

TEST_F(ComparedEngine, ComparesFourColumnsToAVerdictAndAFile) {
  open();
  app::CompareSetup setup;
  setup.prompt = "def main():\n";
  setup.max_tokens = 16;
  setup.repeats = 2;
  run(app::SetCompareSetup{setup});
  run(app::StartComparison{});
  pump_until([&] { return !state().busy(); });
  ASSERT_TRUE(state().comparison) << state().note;
  EXPECT_EQ(state().comparison->problem, "");
  EXPECT_EQ(state().comparison->file, file());
  const Verdict verdict = verdict_of(state().comparison->sweep);
  EXPECT_EQ(verdict.agreement, Agreement::same) << verdict.sentence;
  const app::ComparedReply* ar = state().reply(0, 0);
  ASSERT_NE(ar, nullptr);
  EXPECT_EQ(ar->rounds.size(), 15u) << "the first token comes out of the prompt";
  for (uint32_t column = 1; column < 4; ++column) {
    const app::ComparedReply* reply = state().reply(0, column);
    ASSERT_NE(reply, nullptr);
    EXPECT_EQ(reply->message.text, ar->message.text);
    EXPECT_EQ(reply->text_at(reply->decode_ms), ar->message.text.size());
  }
  EXPECT_TRUE(read_sweep(file()).complete());
  EXPECT_TRUE(view_.cards.empty());
}

// Closing the window loses nothing that was measured; the next one goes on.
TEST_F(ComparedEngine, AWindowClosedInTheMiddleOfASweepLosesNothing) {
  open();
  run(app::SetSweepSetup{small_sweep(20)});
  run(app::StartSweep{});
  pump_until([&] { return state().sweep && state().sweep->sweep.runs.size() >= 7; });
  const size_t heard = state().sweep->sweep.runs.size();
  ASSERT_TRUE(state().busy());
  engine_.reset();
  view_ = {};
  open();
  run(app::OpenSweep{file()});
  ASSERT_TRUE(state().sweep) << state().files.problem;
  const size_t kept = state().sweep->sweep.runs.size();
  EXPECT_GE(kept, heard);
  EXPECT_FALSE(state().sweep->sweep.complete());
  run(app::GoOnWithSweep{});
  ASSERT_TRUE(state().busy());
  pump_until([&] { return !state().busy() || state().sweep->sweep.runs.size() >= kept + 3; });
  EXPECT_EQ(state().note, "");
  ASSERT_TRUE(state().sweep);
  EXPECT_GE(state().sweep->sweep.runs.size(), kept + 3);
  for (size_t i = 0; i < kept; ++i) EXPECT_EQ(state().sweep->sweep.runs[i].place, i) << "runs of before are kept";
}

// Acceptance criterion 16: a cancel is over within a second, and whole replies stay.
TEST_F(ComparedEngine, ACancelledSweepKeepsItsWholeReplies) {
  open();
  run(app::SetSweepSetup{small_sweep(20)});
  run(app::StartSweep{});
  pump_until([&] { return state().sweep && state().sweep->sweep.runs.size() >= 3; });
  const auto asked = std::chrono::steady_clock::now();
  run(app::StopMeasuring{});
  pump_until([&] { return !state().busy(); });
  EXPECT_LT(std::chrono::steady_clock::now() - asked, std::chrono::seconds(1));
  EXPECT_TRUE(state().sweep->cancelled);
  EXPECT_GE(read_sweep(file()).runs.size(), 3u);
}

}  // namespace
}  // namespace canopy::test
