// Branches of a conversation, its file and exports, and the rounds of its tokens.

#include "app/state/conversation.h"

#include <gtest/gtest.h>

#include "app/state/chat.h"
#include "app/state/chat_journal.h"
#include "app/state/view_model.h"
#include "tests/app/support/scripted_engine.h"
#include "tests/base/expect_error.h"

namespace canopy::app {
namespace {

using test::error_of;
using test::small_model;

ViewModel dated_view() {
  ViewModel view;
  view.chat.now_ms = 1'700'000'000'123;
  update(view, UiCommand(OpenModel{"/models/a.gguf"}));
  update(view, Event(small_model()));
  return view;
}

void answer(ViewModel& view, const std::string& text) {
  update(view, Event(TextDelta{view.reply_id, text, 3, 30, 50}));
  ReplyFinished finished;
  finished.reply_id = view.reply_id;
  finished.reply_tokens = 3;
  finished.tokens_per_second = 50.25;
  finished.mode = DecodeMode::tree;
  finished.tau = 1.5;
  finished.plain = {12.5, 3, false};
  update(view, Event(finished));
}

void ask(ViewModel& view, const std::string& question, const std::string& reply) {
  update(view, UiCommand(SendMessage{question}));
  answer(view, reply);
}

std::vector<std::string> texts(const Conversation& chat) {
  std::vector<std::string> out;
  for (const Message& message : chat) out.push_back(message.text);
  return out;
}

using Texts = std::vector<std::string>;

/// A conversation of two questions; the first was edited, and its answer was drawn three times.
ViewModel branched_view() {
  ViewModel view = dated_view();
  ask(view, "One", "A1");
  ask(view, "Two", "A2");
  update(view, UiCommand(EditQuestion{view.messages[0].id, "Uno"}));
  answer(view, "B1");
  update(view, UiCommand(AnswerAgain{view.messages[1].id}));
  answer(view, "B2");
  update(view, UiCommand(RunAgain{}));
  answer(view, "B3");
  return view;
}

TEST(Conversation, EditingAQuestionKeepsTheOldBranchWhole) {  // gui.md, criterion 19: edit branches
  ViewModel view = branched_view();
  EXPECT_EQ(texts(view.messages), (Texts{"Uno", "B3"}));
  EXPECT_EQ(view.messages.place(0).count, 2u);
  EXPECT_EQ(view.messages.place(0).index, 1u);
  update(view, UiCommand(ShowAlternative{view.messages[0].id, -1}));
  EXPECT_EQ(texts(view.messages), (Texts{"One", "A1", "Two", "A2"}));
  update(view, UiCommand(ShowAlternative{view.messages[0].id, 1}));
  EXPECT_EQ(texts(view.messages), (Texts{"Uno", "B3"}));  // the version that was shown there last
}

TEST(Conversation, AnswersAreCycled) {  // gui.md, criterion 19: regenerate branches
  ViewModel view = branched_view();
  const auto shown = [&] { return view.messages.place(1); };
  EXPECT_EQ(shown().count, 3u);
  EXPECT_EQ(shown().index, 2u);
  update(view, UiCommand(ShowAlternative{view.messages[1].id, -1}));
  EXPECT_EQ(view.messages[1].text, "B2");
  update(view, UiCommand(ShowAlternative{view.messages[1].id, -1}));
  update(view, UiCommand(ShowAlternative{view.messages[1].id, -1}));  // there is no version before the first
  EXPECT_EQ(view.messages[1].text, "B1");
  ask(view, "More", "C");
  EXPECT_EQ(texts(view.messages), (Texts{"Uno", "B1", "More", "C"}));
  update(view, UiCommand(ShowAlternative{view.messages[1].id, 1}));
  EXPECT_EQ(texts(view.messages), (Texts{"Uno", "B2"}));
}

TEST(Conversation, AnAnswerThatFailedUnsaidIsNoVersion) {
  ViewModel view = dated_view();
  ask(view, "One", "A1");
  update(view, UiCommand(RunAgain{}));
  update(view, Event(Failure{ErrorKind::out_of_memory, "t", "d", view.reply_id}));
  update(view, UiCommand(RunAgain{}));
  answer(view, "A2");
  EXPECT_EQ(view.messages.place(1).count, 2u);
}

TEST(Conversation, TheEngineIsAskedForTheBranchThatIsShownOnly) {
  ViewModel view = branched_view();
  update(view, UiCommand(SetSystemPrompt{"Be brief."}));
  const Effects effects = update(view, UiCommand(SendMessage{"Next"}));
  const auto& turns = std::get<Generate>(effects.engine.at(0)).turns;
  ASSERT_EQ(turns.size(), 4u);
  EXPECT_EQ(turns[0].role, "system");
  EXPECT_EQ(turns[0].content, "Be brief.");
  EXPECT_EQ(turns[1].content, "Uno");
  EXPECT_EQ(turns[2].content, "B3");
  EXPECT_EQ(turns[3].content, "Next");
}

TEST(Conversation, NothingBranchesWhileAReplyIsWritten) {
  ViewModel view = branched_view();
  update(view, UiCommand(SendMessage{"Next"}));
  const Texts before = texts(view.messages);
  EXPECT_TRUE(update(view, UiCommand(EditQuestion{view.messages[0].id, "x"})).engine.empty());
  EXPECT_TRUE(update(view, UiCommand(AnswerAgain{view.messages[1].id})).engine.empty());
  update(view, UiCommand(ShowAlternative{view.messages[0].id, -1}));
  update(view, UiCommand(ContinueInNewChat{view.messages[0].id}));
  EXPECT_EQ(texts(view.messages), before);
}

TEST(Conversation, ANewChatCarriesTheOldOneAwayWithItsPartialText) {
  ViewModel view = dated_view();
  update(view, UiCommand(SendMessage{"Question"}));
  update(view, Event(TextDelta{view.reply_id, "partial", 1, 10, 10}));
  const Effects effects = update(view, UiCommand(NewChat{}));
  ASSERT_TRUE(effects.closed.has_value());
  EXPECT_EQ(effects.closed->back().text, "partial");
  EXPECT_FALSE(effects.closed->back().writing);
  EXPECT_EQ(effects.closed->back().result->reason, FinishReason::cancelled);
  EXPECT_TRUE(view.messages.empty());
}

TEST(Conversation, AChatGoesOnInAnotherFromAnyMessage) {
  ViewModel view = dated_view();
  ask(view, "One", "A1");
  ask(view, "Two", "A2");
  const Effects effects = update(view, UiCommand(ContinueInNewChat{view.messages[1].id}));
  EXPECT_EQ(texts(view.messages), (Texts{"One", "A1"}));
  EXPECT_EQ(effects.closed->size(), 4u);
  EXPECT_TRUE(view.messages.id.empty()) << "it gets a file of its own";
}

TEST(Conversation, ReadBackFromJsonItIsTheSame) {  // gui.md, criterion 19: export re-imports
  ViewModel view = branched_view();
  view.messages.title = "Numbers \u2713";
  view.messages.system_prompt = "Be brief.";
  const std::string once = json_of(view.messages);
  uint64_t id = 100;
  const Conversation read = conversation_from(once, id);
  EXPECT_EQ(texts(read), texts(view.messages));
  EXPECT_EQ(json_of(read), once);
  EXPECT_EQ(read.nodes().size(), view.messages.nodes().size());
  const ReplyParameters &a = read[1].parameters, &b = view.messages[1].parameters;
  EXPECT_EQ(a.sampling.temperature, b.sampling.temperature);
  EXPECT_EQ(a.sampling.top_p, b.sampling.top_p);
  EXPECT_EQ(a.mode_chosen, false);
  EXPECT_EQ(a.model, "SmolLM2-135M-Instruct Q4_1");
  EXPECT_EQ(read[1].seed, view.messages[1].seed);
  EXPECT_EQ(read[1].created_ms, 1'700'000'000'123);
  EXPECT_EQ(read[1].result->tau, 1.5);
  EXPECT_EQ(read[1].result->plain, (PlainBeside{12.5, 3, false}));
}

TEST(Conversation, ExportsNameNoPath) {
  const ViewModel view = branched_view();
  for (const std::string& text : {json_of(view.messages), markdown_of(view.messages)}) {
    EXPECT_EQ(text.find("/home"), std::string::npos);
    EXPECT_NE(text.find("Radeon RX 7900 XTX"), std::string::npos);
  }
  EXPECT_NE(json_of(view.messages).find("2023-11-14T22:13:20.123Z"), std::string::npos);
  EXPECT_NE(markdown_of(view.messages).find("seed 4"), std::string::npos);
}

TEST(ExportPath, HasTheEndingOfItsFormatOnce) {
  EXPECT_EQ(export_path("/a", "chat", ExportFormat::markdown), "/a/chat.md");
  EXPECT_EQ(export_path("/a", "chat.md", ExportFormat::markdown), "/a/chat.md");
  EXPECT_EQ(export_path("/a", "chat.md", ExportFormat::json), "/a/chat.json");
  EXPECT_EQ(export_path("/a", "v1.2", ExportFormat::json), "/a/v1.2.json");
  EXPECT_EQ(export_path("/a", ".md", ExportFormat::markdown), "/a/.md.md");
}

TEST(Conversation, ImportsSayWhatIsWrong) {
  uint64_t id = 0;
  const auto refused = [&](const std::string& text) { return error_of([&] { conversation_from(text, id); }); };
  EXPECT_NE(refused("[]").find("The file"), std::string::npos);
  EXPECT_NE(refused(R"({"format":"other"})").find("no chat of Canopy"), std::string::npos);
  EXPECT_NE(refused(R"({"format":"canopy-chat","version":9})").find("newer"), std::string::npos);
  const std::string head = R"({"format":"canopy-chat","version":1,"messages":[)";
  EXPECT_NE(refused(head + R"({"after":3,"role":"user","text":"x"}]})").find("earlier message"), std::string::npos);
  EXPECT_NE(refused(head + R"({"role":"system","text":"x"}]})").find("\"system\""), std::string::npos);
  EXPECT_NE(refused(head + R"({"role":"assistant","text":"x","spans":[[5,0,0,"own"],[2,0,0,"own"]]}]})").find("span"),
            std::string::npos);
}

TEST(Conversation, SearchFindsEveryPlaceInEitherCase) {
  ViewModel view = dated_view();
  ask(view, "Merge sort?", "To merge: MERGE both halves.");
  const std::vector<ChatHit> hits = find_in(view.messages, "merge");
  ASSERT_EQ(hits.size(), 3u);
  EXPECT_EQ(hits[0].message, view.messages[0].id);
  EXPECT_EQ(hits[2].begin, 10u);
  EXPECT_TRUE(find_in(view.messages, "").empty());
  EXPECT_TRUE(find_in(view.messages, "quick").empty());
}

TEST(Conversation, SearchGivesBytesOfTheTextForLettersOfAllScripts) {
  ViewModel view = dated_view();
  ask(view, "\u1E9E, Привет, мир", "привет und Äpfel, A\u0308PFEL");
  const std::vector<ChatHit> hits = find_in(view.messages, "ПРИВЕТ");
  ASSERT_EQ(hits.size(), 2u);
  EXPECT_EQ(hits[0], (ChatHit{view.messages[0].id, 5, 17}));
  EXPECT_EQ(hits[1], (ChatHit{view.messages[1].id, 0, 12}));
  EXPECT_EQ(find_in(view.messages, "äpfel").size(), 2u);
  EXPECT_EQ(find_in(view.messages, "ss").size(), 1u);
  EXPECT_EQ(find_in(view.messages, "п", 1).size(), 1u);
}

TEST(Conversation, ATitleIsOneShortLineThatControlsNothing) {
  Conversation chat;
  Message message;
  message.text = "\n  Say \u202Eolleh\x1B[31m\tnow  \r\nand more";
  chat.append(message);
  EXPECT_EQ(chat.shown_title(), "Say \\u202eolleh\\x1b[31m now");
  Conversation large;
  message.text = std::string(1'000'000, 'x');
  large.append(message);
  EXPECT_LE(large.shown_title().size(), 256u);
  large.title = "A\nB";
  EXPECT_EQ(large.shown_title(), "A");
}

RoundFinished round_of(uint64_t reply, uint32_t number, uint32_t accepted, uint32_t begin, std::vector<uint32_t> ends) {
  auto record = std::make_shared<RoundRecord>();
  record->round = number;
  record->mode = DecodeMode::tree;
  record->shape = ends.size() == 1 && accepted == 0 && number == 2 ? DecodeMode::ar : DecodeMode::tree;
  record->accepted = accepted;
  record->nodes.resize(5);
  for (uint32_t n = 0; n < 5; ++n) record->nodes[n].node.depth = n == 4 ? 1 : n;
  for (uint32_t n = 0; n <= accepted; ++n) record->nodes[n].state = NodeState::accepted;
  return {reply, record, 1, begin, std::move(ends)};
}

TEST(Conversation, EachTokenKnowsWhoWroteItAndItsNode) {
  ViewModel view = dated_view();
  update(view, UiCommand(SendMessage{"Go"}));
  update(view, Event(TextDelta{view.reply_id, "The merge step joins", 5, 10, 10}));
  update(view, Event(round_of(view.reply_id, 0, 1, 3, {9, 14})));
  update(view, Event(round_of(view.reply_id, 1, 0, 14, {20})));
  update(view, Event(round_of(view.reply_id, 2, 0, 20, {21})));
  const std::vector<TokenSpan>& spans = view.messages.back().spans;
  ASSERT_EQ(spans.size(), 5u);
  EXPECT_EQ(spans[0], (TokenSpan{0, 3, 0, 0, TokenSource::own}));       // the root, from the prompt's pass
  EXPECT_EQ(spans[1], (TokenSpan{3, 9, 0, 1, TokenSource::accepted}));  // the node of depth 1
  EXPECT_EQ(spans[2], (TokenSpan{9, 14, 0, 5, TokenSource::own}));      // the bonus: the number after the last node
  EXPECT_EQ(spans[3].source, TokenSource::own);
  EXPECT_EQ(spans[4].source, TokenSource::ar);  // an AR round among rounds of drafting
  EXPECT_EQ(view.messages.back().rounds, 3u);
}

TEST(ChatJournal, EveryPrefixOfItsWritingReadsAsTheConversationThen) {
  ViewModel view = dated_view();
  JournalMark mark;
  std::string file;
  const auto keep = [&] {
    file += journal_lines(view.messages, mark);
    uint64_t id = 1000;
    const JournalRead read = read_journal(file, id);
    EXPECT_EQ(read.problem, "");
    EXPECT_FALSE(read.torn);
    EXPECT_EQ(texts(read.conversation), texts(view.messages));
    EXPECT_EQ(read.conversation.nodes().size(), view.messages.nodes().size());
    if (!view.messages.empty()) {
      EXPECT_EQ(read.conversation.back().spans, view.messages.back().spans);
    }
  };
  update(view, UiCommand(SendMessage{"One"}));
  keep();
  for (const char* piece : {"The ", "\u4f60\u597d", " \U0001F333 end"}) {
    update(view, Event(TextDelta{view.reply_id, piece, 1, 10, 10}));
    keep();
  }
  update(view, Event(round_of(view.reply_id, 0, 1, 4, {7, 10})));
  keep();
  answer(view, "!");
  keep();
  update(view, UiCommand(EditQuestion{view.messages[0].id, "Uno"}));
  keep();
  answer(view, "B");
  update(view, UiCommand(ShowAlternative{view.messages[0].id, -1}));
  update(view, UiCommand(RenameChat{"Renamed"}));
  keep();
  uint64_t id = 0;
  EXPECT_EQ(read_journal(file, id).conversation.title, "Renamed");
  EXPECT_EQ(journal_lines(view.messages, mark), "") << "nothing is new";
}

TEST(ChatJournal, CutAnywhereItReadsUpToTheLastWholeLine) {  // gui.md, criterion 19: a kill leaves a valid history
  ViewModel view = branched_view();
  JournalMark mark;
  const std::string file = journal_lines(view.messages, mark);
  uint64_t id = 0;
  for (size_t cut = file.find('\n') + 1; cut < file.size(); ++cut) {
    const JournalRead read = read_journal(std::string_view(file).substr(0, cut), id);
    ASSERT_EQ(read.problem, "") << cut;
    ASSERT_EQ(read.torn, file[cut - 1] != '\n') << cut;
    // Lines added after the cut count, and the incomplete line is skipped.
    const std::string resumed = file.substr(0, cut) + std::string(kResume) + "{\"title\":\"T\"}\n";
    ASSERT_EQ(read_journal(resumed, id).conversation.title, "T") << cut;
    ASSERT_EQ(read_journal(resumed, id).problem, "") << cut;
  }
}

TEST(ChatJournal, LinesWrittenTwiceCountOnce) {
  ViewModel view = branched_view();
  JournalMark mark;
  const std::string file = journal_lines(view.messages, mark);
  const std::string rest = file.substr(file.find('\n') + 1);
  uint64_t id = 0;
  const JournalRead read = read_journal(file + rest, id);
  EXPECT_EQ(read.problem, "");
  EXPECT_EQ(texts(read.conversation), texts(view.messages));
  EXPECT_EQ(read.conversation.nodes().size(), view.messages.nodes().size());
}

TEST(ChatJournal, DamageIsToldWithItsLineAndTheRestIsRead) {
  ViewModel view = branched_view();
  JournalMark mark;
  std::string file = journal_lines(view.messages, mark);
  file[file.find("\"text\"")] = '}';
  uint64_t id = 0;
  const JournalRead read = read_journal(file, id);
  EXPECT_NE(read.problem.find("line 2"), std::string::npos) << read.problem;
  EXPECT_EQ(read.conversation.nodes().size() + 1, view.messages.nodes().size()) << "all but the one in that line";
  EXPECT_NE(read_journal("GIF89a\n", id).problem, "");
  EXPECT_NE(read_journal("", id).problem, "");
}

}  // namespace
}  // namespace canopy::app
