// Comparisons in the window's state: what is asked of the engine, what is kept of its events, the shared clock, files.

#include "app/state/comparison.h"

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <fstream>
#include <mutex>

#include "app/state/view_model.h"
#include "engine/bench/sweep_file.h"
#include "engine/bench/sweep_journal.h"
#include "tests/app/compare/compare_samples.h"
#include "tests/base/temp_folder.h"

namespace canopy::app {
namespace {

using test::ComparingEngine;
using test::ScriptedEngine;
using test::TempFolder;

class ComparisonStates : public testing::Test {
 protected:
  ComparisonStates() : comparing_(engine_) {
    view_.model = test::small_model();
    view_.model->drafter = "drafter.gguf";
    view_.model_state = ModelState::ready;
    state().bundled = {{"81", "writing", {{"user", "Write."}}},
                       {"82", "writing", {{"user", "More."}}},
                       {"gsm_01", "gsm", {{"user", "Count."}}}};
  }

  ComparisonState& state() { return view_.comparison; }
  Effects run(const ComparisonCommand& command) { return update(view_, UiCommand(command)); }
  void take() {
    for (const Event& event : engine_.poll()) update(view_, event);
  }
  Compare start(const ComparisonCommand& command = StartComparison{}) {
    const Effects effects = run(command);
    EXPECT_EQ(effects.engine.size(), 1u);
    if (effects.engine.empty()) return {};
    const auto* compare = std::get_if<Compare>(&effects.engine[0]);
    EXPECT_NE(compare, nullptr);
    return compare != nullptr ? *compare : Compare{};
  }

  static std::vector<MeasuredPrompt> measured(const Compare& asked) {
    std::vector<MeasuredPrompt> prompts;
    for (const ComparisonPrompt& prompt : asked.prompts)
      prompts.push_back({prompt.id, prompt.category, prompt.turns[0].content});
    return prompts;
  }

  ScriptedEngine engine_;
  ComparingEngine comparing_;
  ViewModel view_;
};

TEST_F(ComparisonStates, AsksForTheColumnsOnceAndKeepsWhatTheyWrote) {
  const Compare asked = start();
  EXPECT_EQ(asked.columns.size(), 4u);
  EXPECT_EQ(asked.kind, SweepKind::comparison);
  ASSERT_EQ(asked.prompts.size(), 1u);
  EXPECT_NE(asked.first_reply_id, 0u);
  EXPECT_TRUE(run(StartComparison{}).engine.empty()) << "one at a time";
  EXPECT_TRUE(run(StartSweep{}).engine.empty());
  comparing_.begin(asked);
  comparing_.make();
  comparing_.finish();
  const size_t rounds_before = view_.rounds.log->rounds();
  take();
  EXPECT_FALSE(state().busy());
  ASSERT_TRUE(state().comparison);
  EXPECT_TRUE(state().comparison->sweep.complete());
  EXPECT_EQ(view_.rounds.log->rounds(), rounds_before) << "rounds of a comparison are none of the chat";
  std::string text;
  for (const std::string& piece : test::compared_pieces()) text += piece;
  for (uint32_t column = 0; column < 4; ++column) {
    const ComparedReply* reply = state().reply(0, column);
    ASSERT_NE(reply, nullptr);
    EXPECT_EQ(reply->message.text, text);
    EXPECT_TRUE(reply->ended);
    EXPECT_EQ(reply->message.spans.size(), test::compared_pieces().size());
    EXPECT_NEAR(reply->decode_ms, reply->rounds.back().end_ms, 1e-9);
  }
}

TEST_F(ComparisonStates, AllColumnsShareOneClock) {
  comparing_.begin(start());
  comparing_.make();
  comparing_.finish();
  take();
  const double end = state().race_end();
  EXPECT_EQ(end, state().reply(0, 0)->decode_ms) << "plain decoding takes longest";
  EXPECT_EQ(state().race_now(), end);
  const ComparedReply& ar = *state().reply(0, 0);
  const ComparedReply& tree = *state().reply(0, 2);
  EXPECT_EQ(ar.text_at(end), ar.message.text.size());
  run(SeekRace{tree.decode_ms});
  EXPECT_EQ(tree.text_at(state().race_now()), tree.message.text.size());
  EXPECT_LT(ar.text_at(state().race_now()), ar.message.text.size());
  EXPECT_LT(ar.tokens_at(state().race_now()), tree.tokens_at(state().race_now()));
  // A round's text stands only once the round is over.
  const RaceRound& second = ar.rounds[1];
  EXPECT_EQ(ar.text_at(second.end_ms - 1e-6), ar.rounds[0].text_end);
  EXPECT_EQ(ar.text_at(second.end_ms), second.text_end);
}

TEST_F(ComparisonStates, ARacePlaysFromTheStartAndStopsAtTheEnd) {
  EXPECT_TRUE((run(PlayRace{}), !state().race.playing)) << "there is nothing to play";
  comparing_.begin(start());
  comparing_.make();
  comparing_.finish();
  take();
  run(PlayRace{});
  EXPECT_TRUE(state().race.playing);
  EXPECT_EQ(state().race_now(), 0);
  const double end = state().race_end(), slower = race_slowdown(end);
  EXPECT_GT(slower, 1) << "less than a second is too fast to see";
  advance(state(), 100 * slower);
  EXPECT_NEAR(state().race_now(), 100, 1e-6);
  run(PlayRace{false});
  advance(state(), 1000);
  EXPECT_NEAR(state().race_now(), 100, 1e-6);
  run(PlayRace{});
  advance(state(), end * slower);
  EXPECT_FALSE(state().race.playing);
  EXPECT_EQ(state().race_now(), end);
}

// While a column writes, the others are shown as far as they were at the same time of their own.
TEST_F(ComparisonStates, AColumnThatWritesIsTheClock) {
  comparing_.begin(start());
  comparing_.make(2);
  comparing_.write_some(3);
  take();
  ASSERT_TRUE(state().writing);
  EXPECT_EQ(state().writing->contestant, 2u);
  EXPECT_EQ(state().race_now(), state().reply(0, 2)->decode_ms);
  EXPECT_LT(state().race_now(), state().race_end());
  run(PlayRace{});
  EXPECT_FALSE(state().race.playing) << "the engine sets the pace";
}

TEST_F(ComparisonStates, ProgressNeverFallsAndACancelKeepsWhatIsWhole) {
  comparing_.begin(start(StartSweep{}));
  uint64_t done = 0;
  for (int i = 0; i < 10; ++i) {
    comparing_.make(1);
    take();
    EXPECT_GE(state().progress.done, done);
    done = state().progress.done;
  }
  EXPECT_EQ(state().sweep->sweep.runs.size(), 10u);
  EXPECT_EQ(run(StopMeasuring{}).engine.size(), 1u);
  EXPECT_TRUE(run(StopMeasuring{}).engine.empty()) << "once";
  EXPECT_TRUE(state().busy());
  comparing_.finish(true);
  take();
  EXPECT_FALSE(state().busy());
  EXPECT_EQ(state().sweep->sweep.runs.size(), 10u);
  EXPECT_TRUE(state().sweep->cancelled);
}

TEST_F(ComparisonStates, PausesAndGoesOn) {
  EXPECT_TRUE(run(PauseMeasuring{}).engine.empty()) << "nothing runs";
  comparing_.begin(start());
  take();
  const Effects paused = run(PauseMeasuring{true});
  ASSERT_EQ(paused.engine.size(), 1u);
  EXPECT_TRUE(std::get<PauseComparison>(paused.engine[0]).paused);
  const Effects on = run(PauseMeasuring{false});
  EXPECT_FALSE(std::get<PauseComparison>(on.engine[0]).paused);
}

TEST_F(ComparisonStates, SaysWhyItCouldNotBegin) {
  start();
  Failure failure;
  failure.title = "This cannot be compared";
  failure.detail = "The device is gone.";
  update(view_, Event(failure));
  EXPECT_FALSE(state().busy());
  EXPECT_NE(state().note.find("The device is gone."), std::string::npos);
  EXPECT_EQ(view_.cards.size(), 1u);
}

TEST_F(ComparisonStates, NoMessageIsSentMeanwhile) {
  start();
  EXPECT_FALSE(view_.can_send());
  EXPECT_NE(report_obstacle(view_), "");
}

TEST_F(ComparisonStates, AReleasedModelIsBroughtBackFirst) {
  view_.model_state = ModelState::released;
  view_.model_path = "/models/a.gguf";
  const Effects effects = run(StartComparison{});
  ASSERT_EQ(effects.engine.size(), 2u);
  EXPECT_TRUE(std::holds_alternative<LoadModel>(effects.engine[0]));
  EXPECT_TRUE(std::holds_alternative<Compare>(effects.engine[1]));
}

TEST_F(ComparisonStates, TheSetUpStaysWithinItsBounds) {
  CompareSetup setup = state().compare_setup;
  setup.repeats = 0;
  setup.max_tokens = 1'000'000;
  setup.columns[2].way.budget = 5000;
  setup.columns[0].way.budget = 7;
  run(SetCompareSetup{setup});
  EXPECT_EQ(state().compare_setup.repeats, 1u);
  EXPECT_EQ(state().compare_setup.max_tokens, kMostReplyTokens);
  EXPECT_EQ(state().compare_setup.columns[2].way.budget, kMostBudget);
  EXPECT_EQ(state().compare_setup.columns[0].way.budget, 0u) << "plain decoding has no tree";
  setup.columns.resize(1);
  run(SetCompareSetup{setup});
  EXPECT_EQ(state().compare_setup.columns.size(), 4u) << "one column is no comparison";
  SweepSetup sweep;
  sweep.budgets = {64, 0, 4, 4, 2000};
  run(SetSweepSetup{sweep});
  EXPECT_EQ(state().sweep_setup.budgets, (std::vector<uint32_t>{4, 64}));
}

TEST_F(ComparisonStates, ASweepTakesPromptsOfEachCategory) {
  SweepSetup setup;
  EXPECT_EQ(prompts_of(setup, state().bundled).size(), 2u);
  setup.prompts = 0;
  EXPECT_EQ(prompts_of(setup, state().bundled).size(), 3u);
  setup.chain = false;
  setup.budgets = {16};
  EXPECT_EQ(columns_of(setup).size(), 3u);
}

// After a kill the journal has every whole run; the window opens it and goes on with the same plan.
TEST_F(ComparisonStates, GoesOnWithASweepThatWasNotFinished) {
  const TempFolder folder;
  const std::string file = (folder.path() / "gpu.json").string();
  const Compare asked = start(StartSweep{});
  comparing_.begin(asked);
  comparing_.make(5);
  take();
  { SweepJournal journal(file, comparing_.sweep(), measured(asked)); }
  state().phase = ComparisonState::Phase::idle;
  state().sweep.reset();
  end_read(state(), read_for({SweepFileRequest::What::open, file}, {folder.path().string(), "", ""}));
  ASSERT_TRUE(state().sweep) << state().files.problem;
  EXPECT_EQ(state().sweep->sweep.runs.size(), 5u);
  ASSERT_EQ(state().files.kept.size(), 1u);
  EXPECT_FALSE(state().files.kept[0].finished);
  const Compare again = start(GoOnWithSweep{});
  EXPECT_TRUE(again.resume);
  EXPECT_EQ(again.file, file);
  EXPECT_EQ(again.prompts.size(), asked.prompts.size());
  EXPECT_EQ(again.columns, asked.columns);
  EXPECT_EQ(again.settings.order_seed, comparing_.sweep().settings.order_seed);
}

// One of the command line, with prompts that the window does not know and ways that it has no switch for.
TEST_F(ComparisonStates, GoesOnByTheFilesOwnPlanWhateverIsChosen) {
  const TempFolder folder;
  const std::string file = (folder.path() / "gpu.json").string();
  Compare asked = start(StartSweep{});
  asked.columns = {{{DecodeMode::ar, 0}, "", "", "", ""}, {{DecodeMode::tree, 7}, "", "", "", ""}};
  asked.prompts = {{"mine", "own", {{"user", "My own question?"}}}};
  asked.settings.repeats = 9;
  asked.settings.max_tokens = 77;
  asked.baseline = 1;
  comparing_.begin(asked);
  comparing_.make(4);
  { SweepJournal journal(file, comparing_.sweep(), measured(asked)); }
  state().phase = ComparisonState::Phase::idle;
  run(OpenSweep{file});
  end_read(state(), read_for({SweepFileRequest::What::open, file}, {"", "", ""}));
  ASSERT_TRUE(state().sweep) << state().files.problem;
  EXPECT_EQ(go_on_obstacle(*state().sweep), "");
  const Compare again = start(GoOnWithSweep{});
  EXPECT_EQ(again.columns, asked.columns);
  ASSERT_EQ(again.prompts.size(), 1u);
  EXPECT_EQ(again.prompts[0].turns[0].content, "My own question?");
  EXPECT_EQ(again.settings.repeats, 9u);
  EXPECT_EQ(again.settings.max_tokens, 77u);
  EXPECT_EQ(again.baseline, 1u);
  EXPECT_EQ(again.file, file);
  EXPECT_TRUE(again.resume);
}

TEST_F(ComparisonStates, GoesOnWithWhatItStoppedItself) {
  const Compare asked = start(StartSweep{});
  comparing_.begin(asked);
  comparing_.make(5);
  run(StopMeasuring{});
  comparing_.finish(true);
  take();
  ASSERT_TRUE(state().sweep);
  state().sweep->file = "/sweeps/a.json";
  const Compare again = start(GoOnWithSweep{});
  EXPECT_EQ(again.columns, asked.columns);
  ASSERT_EQ(again.prompts.size(), asked.prompts.size());
  EXPECT_EQ(again.prompts[0].turns[0].content, asked.prompts[0].turns[0].content);
}

TEST_F(ComparisonStates, SaysWhyItCannotGoOn) {
  const TempFolder folder;
  const std::string file = (folder.path() / "gpu.json").string();
  comparing_.begin(start(StartSweep{}));
  comparing_.make(5);
  { SweepJournal journal(file, comparing_.sweep()); }
  state().phase = ComparisonState::Phase::idle;
  end_read(state(), read_for({SweepFileRequest::What::open, file}, {"", "", ""}));
  ASSERT_TRUE(state().sweep) << state().files.problem;
  EXPECT_NE(go_on_obstacle(*state().sweep).find("whose texts are not here: '81'"), std::string::npos);
  EXPECT_TRUE(run(GoOnWithSweep{}).engine.empty());
  MeasuredPlan of_two = *state().sweep;
  of_two.sweep.subjects.resize(2);
  EXPECT_NE(go_on_obstacle(of_two).find("several models"), std::string::npos);
  of_two.file.clear();
  EXPECT_NE(go_on_obstacle(of_two).find("in no file"), std::string::npos);
}

TEST_F(ComparisonStates, OthersSweepsAreLaidOverOnceAndRefusedByName) {
  const TempFolder folder;
  comparing_.begin(start(StartSweep{}));
  comparing_.make();
  comparing_.finish();
  take();
  const std::string theirs = (folder.path() / "theirs.json").string(), bad = (folder.path() / "bad.json").string();
  std::ofstream(theirs) << sweep_text(comparing_.sweep());
  std::ofstream(bad) << "{\"canopy_sweep\": 1}";
  for (int i = 0; i < 2; ++i) end_read(state(), read_for({SweepFileRequest::What::overlay, theirs}, {}));
  EXPECT_EQ(state().files.layers.size(), 1u);
  end_read(state(), read_for({SweepFileRequest::What::overlay, bad}, {}));
  EXPECT_EQ(state().files.layers.size(), 1u);
  EXPECT_NE(state().files.problem.find("bad.json"), std::string::npos) << state().files.problem;
  run(DropOverlay{0});
  EXPECT_TRUE(state().files.layers.empty());
  run(SetBaseline{2});
  EXPECT_EQ(state().baseline, 2u);
  run(SetBaseline{99});
  EXPECT_EQ(state().baseline, 2u);
}

TEST(SweepReading, ReadsOnAThreadOfItsOwn) {
  const TempFolder folder;
  SweepReader reader = sweep_reader({folder.path().string(), std::string(CANOPY_SOURCE_DIR) + "/assets/prompts", ""});
  std::mutex mutex;
  std::condition_variable news;
  bool woken = false;
  reader.set_wake([&] {
    const std::lock_guard lock(mutex);
    woken = true;
    news.notify_one();
  });
  reader.ask({});
  std::unique_lock lock(mutex);
  ASSERT_TRUE(news.wait_for(lock, std::chrono::seconds(20), [&] { return woken; }));
  const std::vector<SweepFileResult> results = reader.take();
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(results[0].bundled.size(), 110u);
  EXPECT_EQ(results[0].prompts_problem, "");
}

}  // namespace
}  // namespace canopy::app
