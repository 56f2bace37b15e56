// What is chosen about a chat: thinking, what goes with a question, and what happens when the context is full.

#include <gtest/gtest.h>

#include "app/state/chat_update.h"
#include "app/state/view_model.h"
#include "tests/app/support/scripted_engine.h"

namespace canopy::app {
namespace {

ViewModel view_with(const ModelReady& model) {
  ViewModel view;
  update(view, UiCommand(OpenModel{"/models/a.gguf"}));
  update(view, Event(model));
  return view;
}

ModelReady thinking_model() {
  ModelReady model = test::small_model();
  model.thinking = {true, true, true, false, true};
  model.context = 1000;
  return model;
}

Generate asked(const Effects& effects) {
  EXPECT_EQ(effects.engine.size(), 1u);
  return effects.engine.empty() ? Generate{} : std::get<Generate>(effects.engine[0]);
}

/// Asks and is answered; the reply leaves so much of the context used.
void talk(ViewModel& view, const std::string& question, const std::string& answer, uint32_t used,
          FinishReason reason = FinishReason::stop_token) {
  update(view, UiCommand(SendMessage{question}));
  update(view, Event(TextDelta{view.reply_id, answer, 2, used, 10}));
  ReplyFinished end;
  end.reply_id = view.reply_id;
  end.reason = reason;
  end.context_used = used;
  update(view, Event(end));
}

const Card* full_card(const ViewModel& view) {
  for (const Card& card : view.cards)
    if (card.title == "The context is full") return &card;
  return nullptr;
}

TEST(ThinkingChoice, IsAskedOnlyOfModelsThatKnowIt) {
  ViewModel view = view_with(test::small_model());
  update(view, UiCommand(ChatCommand(SetThinking{false})));
  EXPECT_EQ(asked(update(view, UiCommand(SendMessage{"Hi"}))).thinking, std::nullopt);
  EXPECT_FALSE(view.messages.back().begins_thinking);

  view = view_with(thinking_model());
  EXPECT_TRUE(thinking_on(view));
  EXPECT_EQ(asked(update(view, UiCommand(SendMessage{"Hi"}))).thinking, std::nullopt) << "as the template does";
  EXPECT_TRUE(view.messages.back().begins_thinking);

  view = view_with(thinking_model());
  update(view, UiCommand(ChatCommand(SetThinking{false})));
  EXPECT_FALSE(thinking_on(view));
  EXPECT_EQ(asked(update(view, UiCommand(SendMessage{"Hi"}))).thinking, false);
  EXPECT_FALSE(view.messages.back().begins_thinking);
  EXPECT_EQ(view.messages.back().parameters.thinking, false);
}

TEST(FullContext, AReplyThatEndsThereLeavesTheChoice) {
  ViewModel view = view_with(thinking_model());
  talk(view, "One question", "One answer", 500);
  EXPECT_FALSE(full_card(view));
  talk(view, "Another one", "Another answer", 1000, FinishReason::context_full);
  ASSERT_TRUE(full_card(view));
  EXPECT_EQ(full_card(view)->action, Card::Action::drop_oldest);
  EXPECT_NE(full_card(view)->detail.find("1,000"), std::string::npos);
  EXPECT_FLOAT_EQ(context_use(view).share(), 1.0f);

  const Effects effects = update(view, UiCommand(ChatCommand(DropOldestTurns{})));
  EXPECT_TRUE(effects.engine.empty()) << "the reply is there";
  EXPECT_FALSE(full_card(view));
  EXPECT_EQ(view.messages.unsent(), 2u);
  EXPECT_EQ(view.messages.size(), 4u) << "nothing is removed";
  EXPECT_LT(context_use(view).used, 1000u);
  const Generate next = asked(update(view, UiCommand(SendMessage{"Go on"})));
  ASSERT_EQ(next.turns.size(), 3u);
  EXPECT_EQ(next.turns[0].content, "Another one");
  EXPECT_EQ(view.messages.back().parameters.left_out, 2u);
}

TEST(FullContext, AQuestionThatDoesNotFitIsAnsweredAfterTheChoice) {
  ViewModel view = view_with(thinking_model());
  view.messages.system_prompt = "Be kind.";
  for (const char* question : {"One", "Two", "Three"}) talk(view, question, std::string(200, 'x'), 900);
  update(view, UiCommand(SendMessage{"Four"}));
  Failure failure;
  failure.reply_id = view.reply_id;
  failure.prompt_tokens = 1100;
  update(view, Event(failure));
  ASSERT_TRUE(full_card(view));
  EXPECT_NE(full_card(view)->detail.find("1,100"), std::string::npos);
  EXPECT_TRUE(view.messages.back().failed_unsaid());
  const Generate again = asked(update(view, UiCommand(ChatCommand(DropOldestTurns{}))));
  ASSERT_GE(again.turns.size(), 2u);
  EXPECT_EQ(again.turns[0].role, "system") << "it stays";
  EXPECT_EQ(again.turns.back().content, "Four");
  EXPECT_EQ(again.turns[1].role, "user");
  EXPECT_NE(again.turns[1].content, "One");
}

TEST(FullContext, OneQuestionThatIsTooLongCannotBeHelpedByDropping) {
  ViewModel view = view_with(thinking_model());
  update(view, UiCommand(SendMessage{"A very long one"}));
  Failure failure;
  failure.reply_id = view.reply_id;
  failure.prompt_tokens = 5000;
  update(view, Event(failure));
  ASSERT_TRUE(full_card(view));
  EXPECT_NE(full_card(view)->action, Card::Action::drop_oldest);
  EXPECT_TRUE(update(view, UiCommand(ChatCommand(DropOldestTurns{}))).engine.empty());
  EXPECT_EQ(view.messages.unsent(), 0u);
}

TEST(FullContext, AllTurnsCanBeSentAgain) {
  ViewModel view = view_with(thinking_model());
  talk(view, "One", "a", 500);
  talk(view, "Two", "b", 600);
  update(view, UiCommand(ChatCommand(DropOldestTurns{})));
  EXPECT_EQ(view.messages.unsent(), 2u);
  update(view, UiCommand(ChatCommand(SendAllTurns{})));
  EXPECT_EQ(asked(update(view, UiCommand(SendMessage{"Three"}))).turns.size(), 5u);
}

TEST(ContextUse, IsThatOfTheChatOnShow) {
  ViewModel view;
  EXPECT_EQ(context_use(view).planned, 0u);
  view = view_with(thinking_model());
  EXPECT_EQ(context_use(view).used, 0u);
  talk(view, "One", "a", 870);
  EXPECT_EQ(context_use(view).used, 870u);
  EXPECT_TRUE(context_use(view).nearly_full());
  EXPECT_EQ(context_words(context_use(view)).substr(0, 41), "This chat takes 870 of 1,000 tokens, the ");
  view.context_used = 0;  // as after the chat was opened from the disk
  EXPECT_EQ(context_use(view).used, 870u);
}

TEST(Attachments, GoWithTheQuestionAndAreCounted) {
  ViewModel view = view_with(thinking_model());
  view.chat.attachments.push_back({"a.txt", "alpha", 0, 0});
  std::vector<Command> counts = take_count_requests(view);
  ASSERT_EQ(counts.size(), 1u);
  const CountTokens count = std::get<CountTokens>(counts[0]);
  EXPECT_NE(count.text.find("alpha"), std::string::npos);
  EXPECT_TRUE(take_count_requests(view).empty()) << "once";
  update(view, Event(TokensCounted{count.id + 1, 0, 99}));
  EXPECT_EQ(view.chat.attachments[0].tokens, 0u) << "not of this file";
  update(view, Event(TokensCounted{count.id, 0, 7}));
  EXPECT_EQ(view.chat.attachments[0].tokens, 7u);
  EXPECT_EQ(context_use(view).waiting, 7u);

  ModelReady other = thinking_model();
  other.vocabulary = 5;
  update(view, Event(other));
  EXPECT_EQ(take_count_requests(view).size(), 1u) << "another vocabulary";

  const Generate sent = asked(update(view, UiCommand(SendMessage{"Why?"})));
  EXPECT_EQ(sent.turns.back().content, "a.txt:\n```\nalpha\n```\n\nWhy?");
  EXPECT_TRUE(view.chat.attachments.empty());
  EXPECT_EQ(view.messages.front().attachments.size(), 1u);
  EXPECT_EQ(view.messages.front().text, "Why?");
}

TEST(Attachments, AreRemovedAndMayGoAlone) {
  ViewModel view = view_with(thinking_model());
  view.chat.attachments = {{"a.txt", "alpha", 0, 0}, {"b.txt", "beta", 0, 0}};
  update(view, UiCommand(ChatCommand(RemoveAttachment{0})));
  update(view, UiCommand(ChatCommand(RemoveAttachment{4})));
  ASSERT_EQ(view.chat.attachments.size(), 1u);
  EXPECT_EQ(asked(update(view, UiCommand(SendMessage{""}))).turns.back().content, "b.txt:\n```\nbeta\n```\n\n");
}

TEST(ChatNote, GoesByItself) {
  ViewModel view;
  view.chat.now_ms = 1000;
  view.chat.note = "Saved a.md";
  EXPECT_FALSE(age_note(view));
  view.chat.now_ms += kNoteMs - 1;
  EXPECT_FALSE(age_note(view));
  view.chat.note = "Saved b.md";
  EXPECT_FALSE(age_note(view));
  view.chat.now_ms += kNoteMs - 1;
  EXPECT_FALSE(age_note(view)) << "counted from the newer one";
  view.chat.now_ms += 1;
  EXPECT_TRUE(age_note(view));
  EXPECT_EQ(view.chat.note, "");
}

TEST(NamedPromptCommands, SayWhatIsWrong) {
  ViewModel view;
  update(view, UiCommand(ChatCommand(SavePrompt{"Tutor", "Explain."})));
  update(view, UiCommand(ChatCommand(RenamePrompt{"Tutor", "Teacher"})));
  ASSERT_EQ(view.chat.prompts.size(), 1u);
  EXPECT_EQ(view.chat.prompts[0].name, "Teacher");
  update(view, UiCommand(ChatCommand(SavePrompt{"", "x"})));
  ASSERT_EQ(view.cards.size(), 1u);
  update(view, UiCommand(ChatCommand(DeletePrompt{"Teacher"})));
  EXPECT_TRUE(view.chat.prompts.empty());
}

TEST(ContextUse, CountsTheDraftAndSaysWhatCannotFit) {
  ViewModel view = view_with(thinking_model());
  EXPECT_EQ(about_tokens(""), 0u);
  EXPECT_EQ(about_tokens("abcdefgh"), 2u);
  EXPECT_GE(about_tokens("\u4f60\u597d"), 2u);
  EXPECT_EQ(context_use(view, std::string(400, 'x')).draft, 100u);
  EXPECT_EQ(too_long_alone(context_use(view, std::string(400, 'x'))), "");
  EXPECT_NE(too_long_alone(context_use(view, std::string(8000, 'x'))).find("2,000 tokens"), std::string::npos);
  EXPECT_NE(context_words(context_use(view, "abcd")).find("about 1 more"), std::string::npos);
}

TEST(FullContext, AQuestionThatIsTooLongAfterOthersDoesNotAskToDropThem) {
  ViewModel view = view_with(thinking_model());
  talk(view, "One", "a", 500);
  update(view, UiCommand(SendMessage{std::string(20'000, 'x')}));
  Failure failure;
  failure.reply_id = view.reply_id;
  failure.prompt_tokens = 5000;
  update(view, Event(failure));
  ASSERT_TRUE(full_card(view));
  EXPECT_EQ(full_card(view)->action, Card::Action::none);
  EXPECT_NE(full_card(view)->detail.find("This question alone"), std::string::npos);
}

TEST(Loops, EndRepliesUnlessTheUserWantsThem) {
  ViewModel view = view_with(thinking_model());
  EXPECT_TRUE(asked(update(view, UiCommand(SendMessage{"One"}))).stop_loops);
  ReplyFinished end;
  end.reply_id = view.reply_id;
  end.reason = FinishReason::repeats;
  end.tokens.ids = {1, 2, 3};
  end.tokens.vocabulary = view.model->vocabulary;
  update(view, Event(TextDelta{view.reply_id, "a guide, a guide", 3, 20, 10}));
  update(view, Event(end));
  EXPECT_TRUE(is_unfinished(view, 1)) << "it can be gone on with";
  update(view, UiCommand(ChatCommand(StopLoops{false})));
  EXPECT_FALSE(asked(update(view, UiCommand(SendMessage{"Two"}))).stop_loops);
}

}  // namespace
}  // namespace canopy::app
