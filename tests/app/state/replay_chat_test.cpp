// A recorded run shown as a conversation: its prompts, its replies up to the shown round, its origin.

#include "app/state/recording.h"

#include <gtest/gtest.h>

#include "app/state/chat.h"
#include "app/state/view_model.h"
#include "engine/base/files.h"
#include "tests/app/support/scripted_engine.h"
#include "tests/app/support/time_zone.h"
#include "tests/base/temp_folder.h"
#include "tests/trace/trace_builder.h"

namespace canopy::app {
namespace {

using test::TempFolder;
using test::TraceBuilder;

/// The turns of a prompt made of these pieces; pieces in angle brackets are control tokens.
std::vector<ChatTurn> turns_of(const std::vector<std::string>& pieces) {
  std::vector<uint32_t> tokens;
  for (uint32_t i = 0; i < pieces.size(); ++i) tokens.push_back(i);
  return prompt_turns(tokens, [&](uint32_t token) {
    return std::optional(trace::Piece{pieces[token], pieces[token].starts_with('<')});
  });
}

TEST(PromptTurns, AreFoundInTheTemplatesOfChatModels) {
  const std::vector<std::vector<std::string>> prompts = {
      {"<im_start>", "system", "\n", "Be", " short.", "<im_end>", "\n", "<im_start>", "user", "\n", "Why", "?",
       "<im_end>", "\n", "<im_start>", "assistant", "\n"},
      {"<bos>", "<start>", "system", "<end>", "\n\n", "Be short.", "<eot>", "<start>", "user", "<end>", "\n\nWhy?",
       "<eot>", "<start>", "assistant", "<end>", "\n\n"},
  };
  for (const auto& prompt : prompts) {
    const std::vector<ChatTurn> turns = turns_of(prompt);
    ASSERT_EQ(turns.size(), 2u);
    EXPECT_EQ(turns[0].role, "system");
    EXPECT_EQ(turns[0].content, "Be short.");
    EXPECT_EQ(turns[1].role, "user");
    EXPECT_EQ(turns[1].content, "Why?");
  }
}

TEST(PromptTurns, APromptWithoutRolesIsOneQuestion) {
  const std::vector<ChatTurn> turns = turns_of({"<s>", "[INST]", " user stories,", " please ", "<e>"});
  ASSERT_EQ(turns.size(), 1u);
  EXPECT_EQ(turns[0].role, "user");
  EXPECT_EQ(turns[0].content, "[INST] user stories, please");
  EXPECT_TRUE(turns_of({}).empty());
}

TEST(PromptTurns, TheNameOfAChannelIsNoText) {
  const auto turns = turns_of({"<|start|>", "user", "<|message|>", "Hi", "<|end|>", "<|start|>", "assistant",
                               "<|channel|>", "final", "<|message|>", "Hello", "<|end|>", "<|start|>", "assistant"});
  ASSERT_EQ(turns.size(), 2u);
  EXPECT_EQ(turns[1].role, "assistant");
  EXPECT_EQ(turns[1].content, "Hello");
}

TEST(PromptTurns, ModelAndAssistantAreTheSame) {
  const auto turns = turns_of({"<t>", "user\nOne", "<e>", "<t>", "model\nTwo", "<e>", "<t>", "user\nThree", "<e>"});
  ASSERT_EQ(turns.size(), 3u);
  EXPECT_EQ(turns[1].role, "assistant");
  EXPECT_EQ(turns[1].content, "Two");
}

class ReplayedDemo : public testing::TestWithParam<size_t> {
 protected:
  ReplayedDemo() {
    watch_demo(view, GetParam());
    update(view, UiCommand(RoundsCommand(ShowRound{0})));
  }
  void show(size_t round) { update(view, UiCommand(RoundsCommand(ShowRound{round}))); }
  const RoundLog& log() const { return *view.rounds.log; }

  ViewModel view;
};

TEST_P(ReplayedDemo, ShowsThePromptAndTheReplyAsFarAsItIsShown) {
  ASSERT_TRUE(view.replaying());
  const std::string whole = log().replies().front().text;
  size_t before = 0, tokens = 1;
  for (size_t round = 0; round < log().rounds(); ++round) {
    show(round);
    const Conversation& chat = view.conversation();
    ASSERT_EQ(chat.size(), 2u);
    EXPECT_EQ(chat[0].role, Role::user);
    EXPECT_EQ(chat[0].text.find("<|"), std::string::npos) << "no tokens of the template";
    EXPECT_FALSE(chat[0].text.starts_with("user")) << chat[0].text;
    const Message& reply = chat.back();
    tokens += log().summary(round).emitted;
    EXPECT_EQ(reply.text, whole.substr(0, reply.text.size())) << "round " << round;
    EXPECT_GE(reply.text.size(), before);
    EXPECT_EQ(reply.spans.size(), tokens);
    EXPECT_EQ(reply.spans.back().round, round);
    EXPECT_EQ(reply.writing, round + 1 < log().rounds());
    before = reply.text.size();
  }
  EXPECT_EQ(view.conversation().back().text, whole);
  EXPECT_EQ(view.conversation().back().result->tau > 1.5, true);
  show(3);
  EXPECT_LT(view.conversation().back().text.size(), before) << "and back again";
}

TEST_P(ReplayedDemo, EveryTokenIsTheNodeThatWroteIt) {
  show(log().rounds() - 1);
  const Message& reply = view.conversation().back();
  size_t at = 1;  // after the prompt's token
  for (size_t round = 0; round < log().rounds(); ++round) {
    const auto record = log().round(round);
    for (size_t i = 0; i < record->emitted.size(); ++i, ++at) {
      const TokenSpan& span = reply.spans[at];
      ASSERT_EQ(span.round, round);
      if (i < record->accepted) {
        EXPECT_EQ(span.source, TokenSource::accepted);
        EXPECT_EQ(record->nodes[span.node].node.token, record->emitted[i]);
        EXPECT_EQ(record->nodes[span.node].state, NodeState::accepted);
      } else {
        EXPECT_EQ(span.node, record->nodes.size()) << "the bonus";
      }
    }
  }
  EXPECT_EQ(at, reply.spans.size());
}

TEST_P(ReplayedDemo, SaysWhereItComesFrom) {
  const ReplayOrigin& origin = view.replay.origin();
  EXPECT_NE(origin.target.find("Q4_1"), std::string::npos) << origin.target;
  EXPECT_FALSE(origin.drafter.empty());
  EXPECT_FALSE(origin.device.empty());
  EXPECT_EQ(origin.recorded.size(), std::string("2026-11-22 03:16").size()) << origin.recorded;
  EXPECT_FALSE(origin.redacted);
}

INSTANTIATE_TEST_SUITE_P(Both, ReplayedDemo, testing::Values(0, 1));

class ReplayedTrace : public testing::Test {
 protected:
  ReplayedTrace() {
    update(view, UiCommand(OpenModel{"/models/a.gguf"}));
    update(view, Event(test::small_model()));
    const Effects effects = update(view, UiCommand(SendMessage{"My question"}));
    id = std::get<Generate>(effects.engine.at(0)).reply_id;
    update(view, Event(TextDelta{id, "My answer", 2, 20, 50}));
  }
  void finish() {
    ReplyFinished finished;
    finished.reply_id = id;
    update(view, Event(finished));
  }
  std::string file(const char* name = "run.canopytrace") const { return (folder.path() / name).string(); }

  TempFolder folder;
  TraceBuilder builder;
  ViewModel view;
  uint64_t id = 0;
};

TEST_F(ReplayedTrace, TheOwnChatComesBackAsItWas) {
  finish();
  builder.write(file(), 20);
  const std::string before = json_of(view.messages);
  open_trace(view, file());
  EXPECT_NE(view.conversation().front().text, "My question");
  for (size_t i = 0; i < 20; ++i) update(view, UiCommand(RoundsCommand(StepRound{1})));
  EXPECT_EQ(json_of(view.messages), before);
  update(view, UiCommand(RoundsCommand(CloseTrace{})));
  EXPECT_EQ(view.conversation().front().text, "My question");
  EXPECT_EQ(json_of(view.messages), before);
  EXPECT_TRUE(view.replay.conversation().empty()) << "nothing of it is kept";
}

TEST_F(ReplayedTrace, TheOwnReplyIsWrittenOnBehindIt) {
  builder.write(file(), 20);
  open_trace(view, file());
  update(view, Event(TextDelta{id, " goes on", 4, 22, 50}));
  finish();
  EXPECT_EQ(view.messages.back().text, "My answer goes on");
  update(view, UiCommand(RoundsCommand(CloseTrace{})));
  EXPECT_EQ(view.conversation().back().text, "My answer goes on");
}

TEST_F(ReplayedTrace, AskingSomethingLeavesIt) {
  finish();
  builder.write(file(), 20);
  open_trace(view, file());
  update(view, UiCommand(SendMessage{"Another question"}));
  EXPECT_FALSE(view.replaying());
  EXPECT_EQ(view.conversation()[2].text, "Another question");
  open_trace(view, file());
  update(view, UiCommand(NewChat{}));
  EXPECT_FALSE(view.replaying());
}

TEST_F(ReplayedTrace, ItsTimeIsThatOfTheUsersClock) {
  builder.write(file(), 20);  // at 2026-01-02 03:04:05 UTC
  for (const auto& [zone, time] :
       {std::pair("UTC0", "2026-01-02 03:04"), {"IST-5:30", "2026-01-02 08:34"}, {"EST5", "2026-01-01 22:04"}}) {
    const test::TimeZone there(zone);
    open_trace(view, file());
    EXPECT_EQ(view.replay.origin().recorded, time);
  }
}

TEST_F(ReplayedTrace, ARedactedOneSaysSoAndHasNoText) {
  builder.write(file(), 20, true);
  open_trace(view, file());
  EXPECT_TRUE(view.replay.origin().redacted);
  for (const Message& message : view.conversation()) EXPECT_EQ(message.text, "");
}

TEST_F(ReplayedTrace, MessagesOfTwoTracesAreNeverTakenForEachOther) {
  builder.write(file(), 20);
  open_trace(view, file());
  const uint64_t first = view.conversation().back().id;
  open_trace(view, file());
  EXPECT_NE(view.conversation().back().id, first);
  EXPECT_GT(first, id);
}

/// Prompts in words: a question, its answer, another question.
TEST_F(ReplayedTrace, AConversationThatGoesOnIsOne) {
  std::vector<std::string> words = {"<c>", "user\n", "One", "Two", "assistant\n", "A", "B"};
  const TracePieces pieces = [&](uint32_t token) {
    return token < words.size() ? trace::Piece{words[token], token == 0} : trace::Piece{};
  };
  const auto plain = [](uint32_t round, uint32_t token) {
    RoundRecord record;
    record.round = round;
    record.emitted = {token};
    return record;
  };
  {
    TraceWriter trace(file(), builder.header(), pieces);
    for (uint32_t turn = 0; turn < 2; ++turn) {
      TraceReplyBegin begin;
      begin.turn = turn;
      begin.prompt = {0, 1, 2};
      if (turn == 1) begin.prompt = {0, 1, 2, 0, 4, 5, 6, 0, 1, 3};
      trace.begin(begin);
      trace.prefilled({0, 1, 5});
      trace.append(plain(0, 6));
      trace.append(plain(1, 5));
      trace.end({FinishReason::stop_token, 3, 5, "ABA"});
    }
    trace.finish();
  }
  open_trace(view, file());
  const auto texts = [&] {
    std::vector<std::string> out;
    for (const Message& message : view.conversation()) out.push_back(message.text);
    return out;
  };
  using Texts = std::vector<std::string>;
  EXPECT_EQ(texts(), (Texts{"One", "AB"}));
  update(view, UiCommand(RoundsCommand(ShowRound{1})));
  EXPECT_EQ(texts(), (Texts{"One", "ABA"}));
  update(view, UiCommand(RoundsCommand(ShowRound{2})));
  EXPECT_EQ(texts(), (Texts{"One", "ABA", "Two", "AB"}));
  update(view, UiCommand(RoundsCommand(ShowRound{0})));
  EXPECT_EQ(texts(), (Texts{"One", "AB"}));
}

}  // namespace
}  // namespace canopy::app
