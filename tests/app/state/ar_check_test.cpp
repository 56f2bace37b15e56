// The check against plain decoding: what is asked of the engine, and the result of its answer.

#include "app/state/plain_decoding.h"

#include <gtest/gtest.h>

#include "app/state/chat.h"
#include "app/state/view_model.h"
#include "tests/app/support/scripted_engine.h"

namespace canopy::app {
namespace {

using CheckPhase = ArCheck::Phase;
using Tokens = std::vector<uint32_t>;

ModelReady pair() {
  ModelReady model = test::small_model();
  model.drafter = "drafter.gguf";
  return model;
}

/// Applies the events of a whole reply with these tokens, three in each round.
void write(ViewModel& view, uint64_t id, const Tokens& tokens, DecodeMode mode) {
  update(view, Event(PrefillProgress{id, 20, 20}));
  update(view, Event(ReplyStarted{id, 20, 0, 10, tokens.front()}));
  for (uint32_t at = 1; at < tokens.size(); at += 3) {
    auto record = std::make_shared<RoundRecord>();
    record->mode = record->shape = mode;
    record->emitted.assign(tokens.begin() + at, tokens.begin() + std::min<size_t>(at + 3, tokens.size()));
    update(view, Event(TextDelta{id, " words", at + 3, 30, 50}));
    update(view, Event(RoundFinished{id, record, at, 0, std::vector<uint32_t>(record->emitted.size(), 0), false}));
  }
}

void end(ViewModel& view, uint64_t id, DecodeMode mode, FinishReason reason = FinishReason::stop_token) {
  ReplyFinished finished;
  finished.reply_id = id;
  finished.mode = mode;
  finished.reason = reason;
  update(view, Event(finished));
}

class ArCheckTest : public testing::Test {
 protected:
  void reply(const Tokens& tokens, FinishReason reason = FinishReason::stop_token) {
    update(view, UiCommand(OpenModel{"/models/a.gguf"}));
    update(view, Event(pair()));
    view.sampling.temperature = 0.7f;
    view.sampling.seed = 41;
    view.messages.system_prompt = "Be short.";
    const Effects effects = update(view, UiCommand(SendMessage{"Hello"}));
    asked = std::get<Generate>(effects.engine.at(0));
    write(view, asked.reply_id, tokens, DecodeMode::tree);
    end(view, asked.reply_id, DecodeMode::tree, reason);
  }
  /// Begins the check and returns the request to the engine.
  Generate check() {
    const Effects effects = update(view, UiCommand(CheckCommand(CheckAgainstAr{view.messages.back().id})));
    EXPECT_EQ(effects.engine.size(), 1u);
    return effects.engine.empty() ? Generate{} : std::get<Generate>(effects.engine[0]);
  }
  const ArCheck& state() const { return view.checks.check; }

  ViewModel view;
  Generate asked;
};

TEST_F(ArCheckTest, NothingIsAskedUnlessItsUserAsks) {
  reply({1, 2, 3, 4, 5});
  EXPECT_EQ(state().phase, CheckPhase::none);
}

TEST_F(ArCheckTest, AsksForTheSameReplyWithoutDrafts) {
  reply({1, 2, 3, 4, 5});
  update(view, UiCommand(SetSampling{{}, false}));  // for later replies, not for this one
  const Generate plain = check();
  EXPECT_EQ(plain.mode, DecodeMode::ar);
  EXPECT_NE(plain.reply_id, asked.reply_id);
  EXPECT_EQ(plain.max_tokens, asked.max_tokens);
  EXPECT_EQ(plain.sampling.temperature, 0.7f);
  EXPECT_EQ(plain.sampling.seed, asked.sampling.seed);
  ASSERT_EQ(plain.turns.size(), 2u);
  EXPECT_EQ(plain.turns[0].role, "system");
  EXPECT_EQ(plain.turns[0].content, "Be short.");
  EXPECT_EQ(plain.turns[1].content, "Hello");
}

TEST_F(ArCheckTest, EqualTokensAreTheSameText) {
  reply({1, 2, 3, 4, 5, 6, 7});
  const std::string chat = json_of(view.messages);
  const size_t rounds = view.rounds.log->rounds();
  const Generate plain = check();
  EXPECT_TRUE(state().running());
  write(view, plain.reply_id, {1, 2, 3, 4}, DecodeMode::ar);
  EXPECT_EQ(check_words(state()), "Checking against plain decoding: 4 of 7 tokens");
  auto record = std::make_shared<RoundRecord>();
  record->emitted = {5, 6, 7};
  update(view, Event(RoundFinished{plain.reply_id, record, 4, 0, {0, 0, 0}, false}));
  EXPECT_TRUE(state().running()) << "the end is not known yet";
  end(view, plain.reply_id, DecodeMode::ar);
  EXPECT_EQ(state().phase, CheckPhase::same);
  EXPECT_EQ(check_words(state()), "Same text as plain decoding: 7 of 7 tokens");
  EXPECT_EQ(check_words(state(), WindowLayout::watch), "The text is the same, word for word, as without guessing.");
  EXPECT_EQ(json_of(view.messages), chat) << "it is no part of the chat";
  EXPECT_EQ(view.rounds.log->rounds(), rounds) << "nor of its rounds";
}

TEST_F(ArCheckTest, AMismatchIsNamedByItsIndexAndEndsTheCheck) {  // as gui.md, criterion 15
  for (size_t at = 0; at < 7; ++at) {
    view = ViewModel();
    reply({1, 2, 3, 4, 5, 6, 7});
    const Generate plain = check();
    Tokens other = {1, 2, 3, 4, 5, 6, 7};
    other[at] = 99;
    write(view, plain.reply_id, other, DecodeMode::ar);
    ASSERT_EQ(state().phase, CheckPhase::different) << at;
    EXPECT_EQ(*state().difference, at);
    EXPECT_EQ(check_words(state()), "Differs from plain decoding at token " + std::to_string(at + 1) + " of 7");
    EXPECT_EQ(check_words(state(), WindowLayout::watch),
              "Differs from plain at token " + std::to_string(at + 1) + " of 7");
    EXPECT_TRUE(view.checks.stop) << "the engine need not write on";
    end(view, plain.reply_id, DecodeMode::ar, FinishReason::cancelled);
    EXPECT_EQ(state().phase, CheckPhase::different) << "and its end changes nothing";
  }
}

/// Texts of a small vocabulary: one letter for each token, and a control token.
class Letters final : public TokenTexts {
 public:
  std::optional<trace::Piece> find(uint32_t token) const override {
    if (token > 25) return token == 99 ? std::optional(trace::Piece{"<end>", true}) : std::nullopt;
    return trace::Piece{std::string_view("abcdefghijklmnopqrstuvwxyz").substr(token, 1)};
  }
};

TEST_F(ArCheckTest, AReplyOfAnotherDayIsComparedWithTheTokensThatAreKeptWithIt) {
  ModelReady model = pair();
  model.vocabulary = 7;
  model.texts = std::make_shared<Letters>();
  update(view, UiCommand(OpenModel{"/models/a.gguf"}));
  update(view, Event(model));
  update(view, UiCommand(SendMessage{"Hello"}));
  update(view, Event(TextDelta{view.reply_id, "abc", 4, 30, 50}));
  ReplyFinished finished;
  finished.reply_id = view.reply_id;
  finished.mode = DecodeMode::tree;
  finished.reply_tokens = 4;
  finished.tokens = {{0, 1, 2}, {99}, 7};
  update(view, Event(finished));
  const std::string file = json_of(view.messages);

  update(view, UiCommand(NewChat{}));
  view.messages = conversation_from(file, view.last_id);
  EXPECT_EQ(json_of(view.messages), file);
  ASSERT_EQ(check_obstacle(view, view.messages.back()), "");
  const Generate plain = check();
  EXPECT_EQ(state().expected, (Tokens{0, 1, 2, 99}));
  write(view, plain.reply_id, {0, 1, 2, 99}, DecodeMode::ar);
  end(view, plain.reply_id, DecodeMode::ar);
  EXPECT_EQ(state().phase, CheckPhase::same);

  Message other = view.messages.back();
  other.result->tokens.ids[1] = 5;
  EXPECT_NE(check_obstacle(view, other).find("do not spell"), std::string::npos);
  other = view.messages.back();
  other.result->tokens.vocabulary = 8;
  EXPECT_NE(check_obstacle(view, other).find("Another model"), std::string::npos);
  other.result->tokens = {};
  EXPECT_NE(check_obstacle(view, other).find("not known"), std::string::npos);
}

TEST_F(ArCheckTest, AnotherLengthIsADifference) {
  reply({1, 2, 3, 4});
  Generate plain = check();
  write(view, plain.reply_id, {1, 2, 3}, DecodeMode::ar);
  end(view, plain.reply_id, DecodeMode::ar);
  EXPECT_EQ(state().phase, CheckPhase::different);
  EXPECT_EQ(*state().difference, 3u);
  plain = check();
  write(view, plain.reply_id, {1, 2, 3, 4, 5}, DecodeMode::ar);
  EXPECT_EQ(state().phase, CheckPhase::different);
  EXPECT_EQ(*state().difference, 4u);
}

TEST_F(ArCheckTest, AStoppedReplyIsComparedAsFarAsItGoes) {
  reply({1, 2, 3, 4}, FinishReason::cancelled);
  const Generate plain = check();
  EXPECT_EQ(plain.max_tokens, 4u);
  write(view, plain.reply_id, {1, 2, 3, 4}, DecodeMode::ar);
  end(view, plain.reply_id, DecodeMode::ar, FinishReason::max_tokens);
  EXPECT_EQ(state().phase, CheckPhase::same);
}

TEST_F(ArCheckTest, IsCancelledByItsUser) {
  reply({1, 2, 3, 4});
  const Generate plain = check();
  const Effects effects = update(view, UiCommand(CheckCommand(CancelCheck{})));
  ASSERT_EQ(effects.engine.size(), 1u);
  EXPECT_TRUE(std::holds_alternative<StopReply>(effects.engine[0]));
  write(view, plain.reply_id, {1, 2, 99, 4}, DecodeMode::ar);  // these were on their way already
  end(view, plain.reply_id, DecodeMode::ar, FinishReason::cancelled);
  EXPECT_EQ(state().phase, CheckPhase::cancelled);
  EXPECT_TRUE(view.can_send());
}

TEST_F(ArCheckTest, MakesWayForTheNextQuestion) {
  reply({1, 2, 3, 4});
  check();
  const Effects effects = update(view, UiCommand(SendMessage{"Go on"}));
  ASSERT_EQ(effects.engine.size(), 2u);
  EXPECT_TRUE(std::holds_alternative<StopReply>(effects.engine[0]));
  EXPECT_TRUE(std::holds_alternative<Generate>(effects.engine[1]));
  EXPECT_EQ(state().phase, CheckPhase::cancelled);
}

TEST_F(ArCheckTest, AFailureIsSaidAndLeavesTheReply) {
  reply({1, 2, 3, 4});
  const Generate plain = check();
  Failure failure;
  failure.title = "The reply could not be written";
  failure.detail = "Out of memory.";
  failure.reply_id = plain.reply_id;
  update(view, Event(failure));
  EXPECT_EQ(check_words(state()), "The check failed: Out of memory.");
  EXPECT_TRUE(view.cards.empty());
  EXPECT_EQ(view.messages.back().result->reason, FinishReason::stop_token);
}

TEST_F(ArCheckTest, ALostDeviceIsNoticedDuringACheckToo) {  // gui.md, criterion 27
  reply({1, 2, 3, 4});
  const Generate plain = check();
  Failure lost;
  lost.kind = ErrorKind::device_lost;
  lost.title = "The device was lost";
  lost.reply_id = plain.reply_id;
  update(view, Event(lost));
  EXPECT_EQ(state().phase, CheckPhase::failed);
  EXPECT_EQ(view.model_state, ModelState::none);
  EXPECT_EQ(view.cards.size(), 1u);
}

TEST_F(ArCheckTest, SaysWhatStandsInItsWay) {
  reply({1, 2, 3, 4});
  const Message& message = view.messages.back();
  EXPECT_EQ(check_obstacle(view, message), "");
  Message unknown = message;
  unknown.id = 9999;
  EXPECT_NE(check_obstacle(view, unknown).find("not known"), std::string::npos);
  Message other = message;
  other.parameters.model = "Another model";
  EXPECT_NE(check_obstacle(view, other).find("Another model"), std::string::npos);
  Message plain = message;
  plain.result->mode = DecodeMode::ar;
  EXPECT_NE(check_obstacle(view, plain).find("plain decoding"), std::string::npos);
  update(view, UiCommand(RecordingCommand(StartRecording{"/data/run", false})));
  EXPECT_NE(check_obstacle(view, message).find("recording"), std::string::npos);
  EXPECT_TRUE(update(view, UiCommand(CheckCommand(CheckAgainstAr{message.id}))).engine.empty());
}

}  // namespace
}  // namespace canopy::app
