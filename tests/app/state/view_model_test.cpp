#include "app/state/view_model.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/app/support/scripted_engine.h"

namespace canopy::app {
namespace {

using test::small_model;

ViewModel ready_view() {
  ViewModel view;
  update(view, UiCommand(OpenModel{"/models/a.gguf"}));
  update(view, Event(small_model()));
  return view;
}

/// A view with one reply being written; its id is view.reply_id.
ViewModel asking_view() {
  ViewModel view = ready_view();
  update(view, UiCommand(SendMessage{"Hello"}));
  return view;
}

template <class T>
const T& only(const Effects& effects) {
  EXPECT_EQ(effects.engine.size(), 1u);
  return std::get<T>(effects.engine.at(0));
}

TEST(ViewModel, OpeningAModelLoadsItOnTheChosenDevice) {
  ViewModel view;
  view.device_selector = "1";
  view.kv = CacheType::q8_0;
  const Effects effects = update(view, UiCommand(OpenModel{"/models/a.gguf"}));
  const auto& load = only<LoadModel>(effects);
  EXPECT_EQ(load.path, "/models/a.gguf");
  EXPECT_EQ(load.device, "1");
  EXPECT_EQ(view.model_state, ModelState::loading);
  EXPECT_EQ(load.quantize, QuantizeOnLoad::none);
  EXPECT_EQ(load.kv, CacheType::q8_0);
  update(view, Event(LoadProgress{"Loading weights", 43, 100, true, 2.5}));
  EXPECT_FLOAT_EQ(view.loading.fraction(), 0.43f);
  EXPECT_TRUE(view.loading.in_bytes);
  EXPECT_EQ(view.loading.seconds_left, 2.5);
  update(view, Event(small_model()));
  EXPECT_EQ(view.model_state, ModelState::ready);
  EXPECT_TRUE(view.can_send());
}

TEST(ViewModel, NothingIsSentWithoutAModel) {
  ViewModel view;
  EXPECT_TRUE(update(view, UiCommand(SendMessage{"Hello"})).engine.empty());
  EXPECT_TRUE(view.messages.empty());
}

TEST(ViewModel, BlankMessagesAreNotSent) {
  ViewModel view = ready_view();
  EXPECT_TRUE(update(view, UiCommand(SendMessage{" \n\t"})).engine.empty());
}

TEST(ViewModel, TextStreamsIntoTheReply) {
  ViewModel view = asking_view();
  EXPECT_EQ(view.reply_state, ReplyState::reading_prompt);
  update(view, Event(PrefillProgress{view.reply_id, 120, 512}));
  EXPECT_EQ(view.prompt.done, 120u);
  EXPECT_EQ(view.prompt.total, 512u);
  update(view, Event(TextDelta{view.reply_id, "Bon", 1, 513, 10}));
  update(view, Event(TextDelta{view.reply_id, "jour \xE2\x9C\x93", 3, 515, 12}));
  EXPECT_EQ(view.reply_state, ReplyState::writing);
  EXPECT_EQ(view.messages.back().text, "Bonjour \xE2\x9C\x93");
  EXPECT_EQ(view.context_used, 515u);
  update(view, Event(ReplyFinished{view.reply_id, FinishReason::stop_token, 512, 0, 3, 515, 1, 1, 12}));
  EXPECT_FALSE(view.busy());
  EXPECT_FALSE(view.messages.back().writing);
}

// The user looked at an older round of another reply; the answer that was just asked for is what they want to see.
TEST(ViewModel, SendingFollowsTheNewRounds) {
  ViewModel view = asking_view();
  update(view, Event(ReplyStarted{view.reply_id, 24, 0, 38, 1}));
  for (uint32_t i = 0; i < 3; ++i) {
    auto record = std::make_shared<RoundRecord>();
    record->emitted = {i};
    update(view, Event(RoundFinished{view.reply_id, record, i + 1, 1, {}, false}));
  }
  update(view, UiCommand(RoundsCommand(ShowRound{0})));
  EXPECT_TRUE(view.rounds.behind_live());
  ReplyFinished finished;
  finished.reply_id = view.reply_id;
  update(view, Event(finished));
  ASSERT_EQ(view.rounds.playback.state, PlayState::paused);
  EXPECT_FALSE(view.rounds.behind_live()) << "nothing is live any more";
  update(view, UiCommand(SendMessage{"Go on"}));
  EXPECT_EQ(view.rounds.playback.state, PlayState::following);
  EXPECT_FALSE(view.rounds.behind_live());
}

TEST(ViewModel, EveryWayToAskFollowsTheNewRounds) {
  const auto asked_again = [](const UiCommand& command) {
    ViewModel view = asking_view();
    ReplyFinished finished;
    finished.reply_id = view.reply_id;
    update(view, Event(finished));
    update(view, UiCommand(RoundsCommand(TogglePause{})));
    EXPECT_EQ(view.rounds.playback.state, PlayState::paused);
    update(view, command);
    return view.rounds.playback.state;
  };
  const ViewModel view = asking_view();
  const uint64_t question = view.messages[0].id, answer = view.messages[1].id;
  EXPECT_EQ(asked_again(UiCommand(RunAgain{})), PlayState::following);
  EXPECT_EQ(asked_again(UiCommand(ChatCommand(AnswerAgain{answer}))), PlayState::following);
  EXPECT_EQ(asked_again(UiCommand(ChatCommand(EditQuestion{question, "Another"}))), PlayState::following);
}

TEST(ViewModel, StopKeepsTheTextAndAsksOnce) {
  ViewModel view = asking_view();
  update(view, Event(TextDelta{view.reply_id, "partial", 1, 10, 10}));
  EXPECT_EQ(update(view, UiCommand(StopWriting{})).engine.size(), 1u);
  EXPECT_TRUE(update(view, UiCommand(StopWriting{})).engine.empty());
  EXPECT_EQ(view.reply_state, ReplyState::stopping);
  update(view, Event(TextDelta{view.reply_id, " text", 2, 11, 10}));
  ReplyFinished finished;
  finished.reply_id = view.reply_id;
  finished.reason = FinishReason::cancelled;
  update(view, Event(finished));
  EXPECT_EQ(view.messages.back().text, "partial text");
  EXPECT_TRUE(view.can_send());
}

TEST(ViewModel, LateEventsOfAnAbandonedReplyChangeNothing) {
  ViewModel view = asking_view();
  const uint64_t old = view.reply_id;
  const Effects effects = update(view, UiCommand(NewChat{}));
  only<StopReply>(effects);
  update(view, Event(TextDelta{old, "late", 1, 9, 1}));
  update(view, Event(ReplyFinished{old, FinishReason::cancelled, 1, 0, 1, 9, 1, 1, 1}));
  EXPECT_TRUE(view.messages.empty());
  EXPECT_EQ(view.context_used, 0u);
  update(view, UiCommand(SendMessage{"Again"}));
  update(view, Event(TextDelta{old, "late", 1, 9, 1}));
  EXPECT_EQ(view.messages.back().text, "");
}

TEST(ViewModel, AllTurnsAreSentButNotAnAnswerThatFailedUnsaid) {
  ViewModel view = asking_view();
  update(view, Event(TextDelta{view.reply_id, "Hi", 1, 9, 1}));
  update(view, Event(ReplyFinished{view.reply_id, FinishReason::stop_token, 1, 0, 1, 9, 1, 1, 1}));
  update(view, UiCommand(SendMessage{"Lost"}));
  update(view, Event(Failure{ErrorKind::out_of_memory, "t", "d", view.reply_id}));
  const Effects effects = update(view, UiCommand(SendMessage{"Third"}));
  const auto& turns = only<Generate>(effects).turns;
  ASSERT_EQ(turns.size(), 3u);
  EXPECT_EQ(turns[0].content, "Hello");
  EXPECT_EQ(turns[1].role, "assistant");
  EXPECT_EQ(turns[2].content, "Third");
}

TEST(ViewModel, RunAgainReplacesTheLastAnswer) {
  ViewModel view = asking_view();
  update(view, Event(TextDelta{view.reply_id, "First", 1, 9, 1}));
  update(view, Event(ReplyFinished{view.reply_id, FinishReason::stop_token, 1, 0, 1, 9, 1, 1, 1}));
  const Effects effects = update(view, UiCommand(RunAgain{}));
  EXPECT_EQ(only<Generate>(effects).turns.size(), 1u);
  EXPECT_EQ(view.messages.size(), 2u);
  EXPECT_EQ(view.messages.back().text, "");
}

TEST(ViewModel, AFailedLoadKeepsThePreviousModel) {
  ViewModel view = ready_view();
  update(view, UiCommand(OpenModel{"/models/broken.gguf"}));
  EXPECT_FALSE(view.can_send());
  update(view, Event(Failure{ErrorKind::bad_input, "The model could not be opened", "It is empty.", 0}));
  EXPECT_EQ(view.model_state, ModelState::ready);
  EXPECT_TRUE(view.can_send());
  ASSERT_EQ(view.cards.size(), 1u);
  EXPECT_EQ(view.cards[0].action, Card::Action::choose_model);
  update(view, UiCommand(DismissCard{view.cards[0].id}));
  EXPECT_TRUE(view.cards.empty());
}

TEST(ViewModel, AModelThatWouldFitQuantizedIsOfferedSo) {
  ViewModel view;
  update(view, UiCommand(OpenModel{"/models/a.gguf"}));
  Failure failure{ErrorKind::out_of_memory, "The model does not fit into memory", "16.00 GB are needed.", 0};
  failure.would_fit_quantized = true;
  update(view, Event(failure));
  ASSERT_EQ(view.cards.size(), 1u);
  EXPECT_EQ(view.cards[0].action, Card::Action::load_quantized);
  const Effects effects = update(view, UiCommand(LoadQuantized{}));
  EXPECT_EQ(only<LoadModel>(effects).path, "/models/a.gguf");
  EXPECT_EQ(only<LoadModel>(effects).quantize, QuantizeOnLoad::automatic);
  EXPECT_TRUE(view.cards.empty());
  ModelReady model = small_model();
  model.file_name = "Large-BF16.gguf";
  model.quantization = "BF16";
  model.quantized_to = "Q8_0";
  update(view, Event(model));
  EXPECT_EQ(model_title(*view.model), "Large BF16 as Q8_0");
  model.kernels_note = "Products round activations to 8 bits.";
  update(view, Event(model));
  EXPECT_EQ(model_title(*view.model), "Large BF16 as Q8_0, 8-bit activations");
}

TEST(ViewModel, ACancelledLoadLeavesNoCard) {
  ViewModel view;
  update(view, UiCommand(OpenModel{"/models/a.gguf"}));
  only<CancelLoad>(update(view, UiCommand(CancelLoading{})));
  update(view, Event(Failure{ErrorKind::cancelled, "Loading was cancelled", "", 0}));
  EXPECT_EQ(view.model_state, ModelState::none);
  EXPECT_TRUE(view.cards.empty());
}

TEST(ViewModel, TheEndOfAReplacedLoadIsNotTakenForThatOfTheNewOne) {
  ViewModel view;
  update(view, UiCommand(OpenModel{"/models/a.gguf"}));
  const Effects effects = update(view, UiCommand(OpenModel{"/models/b.gguf"}));
  ASSERT_EQ(effects.engine.size(), 2u);
  EXPECT_TRUE(std::holds_alternative<CancelLoad>(effects.engine[0]));
  update(view, Event(Failure{ErrorKind::cancelled, "Loading was cancelled", "", 0}));
  EXPECT_EQ(view.model_state, ModelState::loading);
  update(view, Event(small_model()));
  EXPECT_EQ(view.model_state, ModelState::ready);
}

TEST(ViewModel, ALostDeviceKeepsTheConversationAndOffersToLoadAgain) {
  ViewModel view = asking_view();
  update(view, Event(TextDelta{view.reply_id, "kept", 1, 9, 1}));
  update(view, Event(Failure{ErrorKind::device_lost, "The device was lost", "", view.reply_id}));
  EXPECT_EQ(view.messages.back().text, "kept");
  EXPECT_EQ(view.model_state, ModelState::none);
  ASSERT_EQ(view.cards.size(), 1u);
  EXPECT_EQ(view.cards[0].action, Card::Action::load_again);
}

TEST(ViewModel, AGgufGoesByTheNameOfItsFile) {
  ModelReady model;
  model.name = "Smollm2 135M 8k Lc100K Mix1 Ep2";
  model.quantization = "Q4_1";
  model.file_name = "SmolLM2-135M-Instruct.Q4_1.gguf";
  EXPECT_EQ(model_title(model), "SmolLM2-135M-Instruct Q4_1");
  model.file_name = "qwen3-0.6b-q4_1.GGUF";
  EXPECT_EQ(model_title(model), "qwen3-0.6b Q4_1");
  model.file_name = "plain.gguf";
  EXPECT_EQ(model_title(model), "plain Q4_1");
  model.file_name = "q4_1.gguf";
  EXPECT_EQ(model_title(model), "Smollm2 135M 8k Lc100K Mix1 Ep2 Q4_1");
  model.file_name = "3f2a9c";  // a folder, whose name may be a hash
  EXPECT_EQ(model_title(model), "Smollm2 135M 8k Lc100K Mix1 Ep2 Q4_1");
  model.quantization = "";
  model.file_name = "plain.gguf";
  EXPECT_EQ(model_title(model), "plain");
}

TEST(ViewModel, ScaleIsClamped) {
  ViewModel view;
  update(view, UiCommand(SetScale{99}));
  EXPECT_FLOAT_EQ(view.user_scale, kMaxScale);
  update(view, UiCommand(SetScale{std::numeric_limits<float>::quiet_NaN()}));
  EXPECT_FLOAT_EQ(view.user_scale, kMaxScale);
  update(view, UiCommand(SetScale{0}));
  EXPECT_FLOAT_EQ(view.user_scale, kMinScale);
}

}  // namespace
}  // namespace canopy::app
