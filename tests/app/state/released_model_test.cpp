#include "app/state/models.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "app/state/view_model.h"
#include "tests/app/support/scripted_engine.h"

namespace canopy::app {
namespace {

constexpr int64_t kMinute = 60'000, kStart = 1'700'000'000'000;

/// A view on a clock of its own, with a model that is released after 15 idle minutes.
class ReleasedModelTest : public testing::Test {
 protected:
  ReleasedModelTest() {
    view_.chat.now_ms = kStart;
    view_.device_selector = "1";
    view_.quantize = QuantizeOnLoad::q8_0;
    view_.models.drafter = "/models/drafter";
    posted_ = std::get<LoadModel>(run(OpenModel{"/models/a.gguf"}).at(0));
    tell(test::small_model());
    run(ModelsCommand(ReleaseWhenIdle{15}));
  }

  std::vector<Command> run(const UiCommand& command) { return update(view_, command).engine; }
  void tell(const Event& event) { update(view_, event); }
  std::vector<Command> due() { return take_due_commands(view_); }
  void pass(int64_t ms) { view_.chat.now_ms += ms; }

  /// Lets the idle minutes pass and has the engine release the model.
  void release() {
    pass(15 * kMinute);
    ASSERT_EQ(due().size(), 1u);
    tell(ModelReleased{posted_});
    ASSERT_EQ(view_.model_state, ModelState::released);
  }

  /// Asks, and lets the load begin that the question waits for.
  LoadModel ask(const std::string& text) {
    EXPECT_TRUE(run(SendMessage{text}).empty()) << "no reply is asked for while there is no model";
    const std::vector<Command> loads = due();
    EXPECT_EQ(loads.size(), 1u);
    EXPECT_EQ(view_.model_state, ModelState::loading);
    return loads.empty() ? LoadModel{} : std::get<LoadModel>(loads[0]);
  }

  void finish_reply() {
    ReplyFinished finished;
    finished.reply_id = view_.reply_id;
    tell(finished);
  }

  bool has_card(Card::Action action) const {
    return std::ranges::any_of(view_.cards, [&](const Card& card) { return card.action == action; });
  }

  ViewModel view_;
  LoadModel posted_;
};

TEST_F(ReleasedModelTest, IsReleasedWhenItsMinutesHavePassedAndNotBefore) {
  EXPECT_EQ(release_due_ms(view_), kStart + 15 * kMinute);
  pass(15 * kMinute - 1);
  EXPECT_TRUE(due().empty());
  EXPECT_EQ(view_.model_state, ModelState::ready);
  pass(1);
  const std::vector<Command> commands = due();
  ASSERT_EQ(commands.size(), 1u);
  EXPECT_TRUE(std::holds_alternative<ReleaseModel>(commands[0]));
  EXPECT_TRUE(due().empty()) << "it is asked for once";
  tell(ModelReleased{posted_});
  EXPECT_EQ(release_due_ms(view_), std::nullopt);
  EXPECT_EQ(state_words(view_), "Released after 15 idle minutes; your next message loads it again");
  EXPECT_TRUE(view_.cards.empty());
  EXPECT_TRUE(view_.can_send());
  EXPECT_TRUE(view_.model.has_value()) << "what it was can still be said";
}

TEST_F(ReleasedModelTest, StaysWhereNobodyAskedForARelease) {
  EXPECT_EQ(ModelsState{}.idle_minutes, 0u);
  run(ModelsCommand(ReleaseWhenIdle{0}));
  EXPECT_EQ(release_due_ms(view_), std::nullopt);
  pass(1000 * kMinute);
  EXPECT_TRUE(due().empty());
}

TEST_F(ReleasedModelTest, TheChoiceIsKeptWithinItsBoundsAndLoadsNothing) {
  EXPECT_TRUE(run(ModelsCommand(ReleaseWhenIdle{1'000'000})).empty());
  EXPECT_EQ(view_.models.idle_minutes, kMostIdleMinutes);
}

TEST_F(ReleasedModelTest, StaysWhileSomethingNeedsIt) {
  const auto stays = [&](const char* why) {
    pass(60 * kMinute);
    EXPECT_EQ(release_due_ms(view_), std::nullopt) << why;
    EXPECT_TRUE(due().empty()) << why;
  };
  run(SendMessage{"Hello"});
  stays("a reply is being written");
  finish_reply();
  EXPECT_EQ(release_due_ms(view_), view_.chat.now_ms + 15 * kMinute) << "its end counts, not its beginning";
  view_.recording.phase = RecordingPhase::on;
  stays("the next replies are to be recorded");
  view_.recording.phase = RecordingPhase::off;
  view_.calibration.phase = CalibrationState::Phase::running;
  stays("costs are being measured");
  view_.calibration.phase = CalibrationState::Phase::idle;
  view_.checks.check.phase = ArCheck::Phase::running;
  stays("a reply is being checked");
  view_.checks.check.phase = ArCheck::Phase::none;
  run(OpenModel{"/models/b.gguf"});
  stays("another model is being loaded");
  tell(test::small_model());
  pass(15 * kMinute);
  EXPECT_EQ(due().size(), 1u);
}

TEST_F(ReleasedModelTest, WhateverIsDoneBeginsTheMinutesAnew) {
  const auto put_off = [&](const char* by) {
    EXPECT_EQ(release_due_ms(view_), view_.chat.now_ms + 15 * kMinute) << by;
    pass(10 * kMinute);
    EXPECT_TRUE(due().empty()) << by;
  };
  run(SetTheme{ThemeKind::light});
  put_off("a command of the user");
  note_work(view_);
  put_off("typing");
  tell(MemoryUse{});
  put_off("an event of the engine");
  view_.chat.now_ms -= 600 * kMinute;
  due();
  put_off("a clock that was set back");
}

TEST_F(ReleasedModelTest, AQuestionLoadsItAgainAsItWasAndIsAnsweredByItself) {
  release();
  EXPECT_EQ(view_.context_used, 0u);
  const LoadModel load = ask("Hello");
  EXPECT_EQ(load.path, "/models/a.gguf");
  EXPECT_EQ(load.device, "1");
  EXPECT_EQ(load.drafter, "/models/drafter");
  EXPECT_EQ(load.quantize, QuantizeOnLoad::q8_0);
  ASSERT_EQ(view_.messages.size(), 2u);
  EXPECT_EQ(view_.messages[0].text, "Hello");
  EXPECT_TRUE(view_.busy());
  tell(LoadProgress{"Loading weights", 43, 100, true, 2.5});
  EXPECT_FLOAT_EQ(view_.loading.fraction(), 0.43f);
  EXPECT_TRUE(due().empty());
  tell(test::small_model());
  const std::vector<Command> replies = due();
  ASSERT_EQ(replies.size(), 1u);
  const auto& reply = std::get<Generate>(replies[0]);
  EXPECT_EQ(reply.reply_id, view_.reply_id);
  ASSERT_EQ(reply.turns.size(), 1u);
  EXPECT_EQ(reply.turns[0].content, "Hello");
  EXPECT_TRUE(reply.rounds);
  EXPECT_TRUE(due().empty());
  tell(TextDelta{view_.reply_id, "Yes.", 1, 25, 64});
  finish_reply();
  EXPECT_EQ(view_.messages[1].text, "Yes.");
  EXPECT_EQ(view_.model_state, ModelState::ready);
  EXPECT_EQ(release_due_ms(view_), view_.chat.now_ms + 15 * kMinute);
}

TEST_F(ReleasedModelTest, EveryWayToAskLoadsItAgain) {
  run(SendMessage{"Hello"});
  tell(TextDelta{view_.reply_id, "Yes.", 1, 25, 64});
  finish_reply();
  for (const bool edit : {false, true}) {
    release();
    const uint64_t question = view_.messages[0].id;
    const UiCommand asks = edit ? UiCommand(ChatCommand(EditQuestion{question, "Another"})) : UiCommand(RunAgain{});
    EXPECT_TRUE(run(asks).empty());
    ASSERT_EQ(due().size(), 1u);
    tell(test::small_model());
    const std::vector<Command> replies = due();
    ASSERT_EQ(replies.size(), 1u);
    EXPECT_EQ(std::get<Generate>(replies[0]).turns[0].content, edit ? "Another" : "Hello");
    finish_reply();
  }
}

// Asked for after the release was posted and before the engine said how the model had been opened.
TEST_F(ReleasedModelTest, AQuestionInTheVeryMomentOfTheReleaseWaitsForIt) {
  pass(15 * kMinute);
  ASSERT_EQ(due().size(), 1u);
  EXPECT_TRUE(run(SendMessage{"Hello"}).empty());
  EXPECT_TRUE(due().empty());
  tell(ModelReleased{posted_});
  const std::vector<Command> loads = due();
  ASSERT_EQ(loads.size(), 1u);
  EXPECT_EQ(std::get<LoadModel>(loads[0]).path, posted_.path);
}

TEST_F(ReleasedModelTest, AnEngineThatHadNoModelAnswersTheQuestionWithItsReason) {
  pass(15 * kMinute);
  ASSERT_EQ(due().size(), 1u);
  run(SendMessage{"Hello"});
  tell(ModelReleased{});
  EXPECT_EQ(view_.model_state, ModelState::none);
  const std::vector<Command> replies = due();
  ASSERT_EQ(replies.size(), 1u);
  EXPECT_TRUE(std::holds_alternative<Generate>(replies[0]));
}

TEST_F(ReleasedModelTest, AFailedLoadKeepsTheQuestionAndItCanBeAskedAgain) {
  release();
  ask("Hello");
  tell(Failure{ErrorKind::out_of_memory, "The model does not fit", "It needs 9 GB."});
  EXPECT_EQ(view_.model_state, ModelState::released);
  EXPECT_FALSE(view_.busy());
  EXPECT_EQ(view_.messages[0].text, "Hello");
  EXPECT_TRUE(has_card(Card::Action::choose_model)) << "the usual card";
  EXPECT_TRUE(has_card(Card::Action::run_again));
  EXPECT_TRUE(due().empty()) << "it is not tried again by itself";

  EXPECT_TRUE(run(RunAgain{}).empty());
  EXPECT_TRUE(std::holds_alternative<LoadModel>(due().at(0)));
  EXPECT_TRUE(view_.cards.empty());
  tell(test::small_model());
  EXPECT_EQ(std::get<Generate>(due().at(0)).turns.back().content, "Hello");
}

TEST_F(ReleasedModelTest, ACancelledLoadKeepsTheQuestionToo) {
  for (const bool by_stop : {false, true}) {
    release();
    ask("Hello");
    const std::vector<Command> commands = by_stop ? run(StopWriting{}) : run(CancelLoading{});
    ASSERT_EQ(commands.size(), 1u);
    EXPECT_TRUE(std::holds_alternative<CancelLoad>(commands[0]));
    tell(Failure{ErrorKind::cancelled, "Loading was cancelled", ""});
    EXPECT_EQ(view_.model_state, ModelState::released);
    EXPECT_FALSE(view_.busy());
    ASSERT_EQ(view_.cards.size(), 1u);
    EXPECT_TRUE(view_.cards[0].warning);
    EXPECT_TRUE(has_card(Card::Action::run_again));
    run(RunAgain{});
    ASSERT_EQ(due().size(), 1u);
    tell(test::small_model());
    EXPECT_EQ(due().size(), 1u);
    finish_reply();
  }
}

// The load came to its end before the engine saw that it was cancelled.
TEST_F(ReleasedModelTest, AStopThatComesTooLateLeavesAModelThatIsReady) {
  release();
  ask("Hello");
  run(StopWriting{});
  tell(test::small_model());
  EXPECT_EQ(view_.model_state, ModelState::ready);
  EXPECT_TRUE(due().empty()) << "the stopped reply is not asked for";
}

TEST_F(ReleasedModelTest, AnotherModelInsteadTakesNothingFromTheQuestion) {
  release();
  ask("Hello");
  const std::vector<Command> commands = run(OpenModel{"/models/b.gguf"});
  EXPECT_EQ(std::get<LoadModel>(commands.back()).path, "/models/b.gguf");
  tell(Failure{ErrorKind::cancelled, "Loading was cancelled", ""});
  EXPECT_EQ(view_.model_state, ModelState::loading);
  tell(test::small_model());
  EXPECT_EQ(view_.model_state, ModelState::ready);
  EXPECT_TRUE(due().empty());
  EXPECT_TRUE(has_card(Card::Action::run_again));
  EXPECT_EQ(std::get<Generate>(run(RunAgain{}).at(0)).turns.back().content, "Hello");
}

TEST_F(ReleasedModelTest, AModelThatCannotBeOpenedInsteadLeavesTheReleasedOne) {
  release();
  run(OpenModel{"/models/b.gguf"});
  tell(Failure{ErrorKind::bad_input, "The model could not be opened", ""});
  EXPECT_EQ(view_.model_state, ModelState::released);
  EXPECT_EQ(ask("Hello").path, "/models/a.gguf");
  EXPECT_EQ(view_.model_path, "/models/a.gguf");
}

}  // namespace
}  // namespace canopy::app
