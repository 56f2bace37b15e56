// "Continue": what is asked of the engine, what becomes of text, tokens and figures, and what is on the disk at any
// moment of it.

#include "app/state/chat_update.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "app/state/chat.h"
#include "app/state/chat_journal.h"
#include "app/state/live_log.h"
#include "tests/app/support/chat_window.h"
#include "tests/base/temp_folder.h"
#include "tests/trace/trace_builder.h"

namespace canopy::app {
namespace {

namespace fs = std::filesystem;
using test::TempFolder;
using test::TraceBuilder;

constexpr uint64_t kVocabulary = 77;

ModelReady model_with_vocabulary() {
  ModelReady model = test::small_model();
  model.vocabulary = kVocabulary;
  return model;
}

/// A window with an engine that answers as it is told.
class ContinuedWindow : public test::ChatWindow {
 public:
  explicit ContinuedWindow(const fs::path& folder) : ChatWindow(folder, model_with_vocabulary()) {}

  void started(uint32_t begun_bytes = 0) {
    builder.begin(DecodeMode::tree);
    event(ReplyStarted{view.reply_id, 10, 0, 5, *builder.prefill().first_token, begun_bytes});
  }
  /// A round of a tree whose tokens write this text; the token before it wrote `first`.
  void round(const std::string& first, const std::string& text) {
    const auto begin = static_cast<uint32_t>(view.messages.back().text.size() + first.size());
    event(TextDelta{view.reply_id, first + text, ++tokens, 10, 10});
    records.push_back(builder.tree(12));
    std::vector<uint32_t> ends(records.back().emitted.size(), begin + static_cast<uint32_t>(text.size()));
    const auto index = static_cast<uint32_t>(reply().so_far.ids.size());
    event(RoundFinished{view.reply_id, std::make_shared<const RoundRecord>(records.back()), index, begin, ends, false});
  }
  void finished(FinishReason reason, std::vector<uint32_t> ids, double tau = 2) {
    event(ending(reason, std::move(ids), tau));
  }
  ReplyFinished ending(FinishReason reason, std::vector<uint32_t> ids, double tau = 2) const {
    ReplyFinished end;
    end.reply_id = view.reply_id;
    end.reason = reason;
    end.reply_tokens = static_cast<uint32_t>(ids.size());
    end.prompt_tokens = 10;
    end.prefill_ms = 7;
    end.decode_ms = 100;
    end.tau = tau;
    end.mode = DecodeMode::tree;
    if (!ids.empty()) end.tokens = {std::move(ids), {}, kVocabulary};
    return end;
  }
  /// A reply of two rounds that the limit ended.
  void limited() {
    run(SendMessage{"Tell"});
    started();
    round("One", " two");
    round("", " thr\u00e9");
    finished(FinishReason::max_tokens, {1, 2, 3, 4, 5});
  }
  const Message& reply() const { return view.messages.back(); }
  fs::path rounds(const TempFolder& folder) const { return folder.path() / (view.messages.id + ".rounds"); }

  TraceBuilder builder;
  std::vector<RoundRecord> records;
  uint32_t tokens = 0;
};

const Generate& request_of(const Effects& effects) {
  EXPECT_EQ(effects.engine.size(), 1u);
  return std::get<Generate>(effects.engine.at(0));
}

/// What a window that is opened now finds on the disk of this chat.
Conversation on_disk(const ContinuedWindow& window, const TempFolder& folder) {
  std::ifstream file(folder.path() / (window.view.messages.id + ".jsonl"));
  std::stringstream text;
  text << file.rdbuf();
  uint64_t ids = 1000;
  JournalRead read = read_journal(text.str(), ids);
  EXPECT_EQ(read.problem, "");
  EXPECT_EQ(read.note, "");
  return std::move(read.conversation);
}

TEST(ContinueReply, AsksForTheSameReplyFromWhereItEnded) {
  TempFolder folder;
  ContinuedWindow window(folder.path());
  window.view.messages.system_prompt = "Be brief";
  window.view.sampling.seed = 41;
  window.view.max_tokens = 5;
  window.limited();
  ASSERT_TRUE(is_unfinished(window.view, 1));
  ASSERT_EQ(continue_obstacle(window.view, window.reply()), "");
  window.view.messages.system_prompt = "Be long";  // for later replies
  window.view.sampling.temperature = 1.5f;
  window.view.max_tokens = 300;
  const auto drawn = window.view.replies_drawn;
  const Effects effects = window.run(ContinueReply{window.reply().id});
  const Generate& more = request_of(effects);
  ASSERT_EQ(more.turns.size(), 2u);
  EXPECT_EQ(more.turns[0].content, "Be brief");
  EXPECT_EQ(more.turns[1].content, "Tell");
  EXPECT_EQ(more.begun.ids, (std::vector<uint32_t>{1, 2, 3, 4, 5}));
  EXPECT_EQ(more.begun.vocabulary, kVocabulary);
  EXPECT_EQ(more.max_tokens, 300u);
  EXPECT_EQ(more.sampling.temperature, window.reply().parameters.sampling.temperature);
  EXPECT_NE(more.sampling.temperature, 1.5f);
  EXPECT_EQ(more.sampling.seed, 41u);
  EXPECT_TRUE(more.rounds);
  EXPECT_NE(more.reply_id, window.reply().id);
  EXPECT_EQ(window.view.replies_drawn, drawn);
  EXPECT_TRUE(window.view.busy());
  EXPECT_EQ(window.view.messages.size(), 2u) << "it goes on in place";
}

TEST(ContinueReply, TextTokensAndFiguresBecomeThoseOfOneReply) {
  TempFolder folder;
  ContinuedWindow window(folder.path());
  window.limited();
  window.run(ContinueReply{window.reply().id});
  EXPECT_EQ(window.reply().text, "One two thr\u00e9") << "the text stays while the prompt is read";
  window.started(11);  // the last character had been cut in two
  EXPECT_EQ(window.reply().text, "One two thr");
  window.round("ee", " four");
  window.finished(FinishReason::stop_token, {1, 2, 3, 4, 9, 6, 7}, 5);
  const Message& reply = window.reply();
  EXPECT_EQ(reply.text, "One two three four");
  EXPECT_FALSE(reply.before);
  ASSERT_TRUE(reply.result);
  EXPECT_EQ(reply.rounds, 3u);
  EXPECT_DOUBLE_EQ(reply.result->tau, (2 * 2 + 5) / 3.0);
  EXPECT_DOUBLE_EQ(reply.result->decode_ms, 200);
  EXPECT_DOUBLE_EQ(reply.result->tokens_per_second, 1000 * 9 / 200.0);
  EXPECT_EQ(reply.result->reply_tokens, 7u);
  EXPECT_EQ(reply.result->tokens.ids.size(), 7u);
  EXPECT_EQ(reply.result->reason, FinishReason::stop_token);
  // Spans follow each other without a gap, and those of the new part know their round.
  uint32_t end = 0;
  for (const TokenSpan& span : reply.spans) {
    EXPECT_EQ(span.begin, end);
    end = span.end;
  }
  EXPECT_EQ(end, reply.text.size());
  EXPECT_EQ(reply.spans.back().round, 2u);
  ASSERT_EQ(reply.continued.size(), 1u);
  EXPECT_EQ(reply.continued[0].first_round, 2u);
  EXPECT_EQ(reply.continued[0].text_begin, 11u);
  EXPECT_EQ(part_of_round(reply, 1).reply_id, reply.id);
  EXPECT_EQ(part_of_round(reply, 2).reply_id, reply.continued[0].reply_id);
  EXPECT_EQ(part_of_round(reply, 2).first_round, 2u);
  EXPECT_FALSE(is_unfinished(window.view, 1));
  // Means over the reply are over all of it, as under its text.
  const RoundLog& log = *window.view.rounds.log;
  EXPECT_EQ(log.first_of_reply(2), 0u);
  EXPECT_EQ(log.replies()[1].message, reply.id);
  // A check against plain decoding asks for all of it at once.
  window.view.messages.back().parameters.model = model_title(*window.view.model);
  const Effects check = window.run(CheckCommand(CheckAgainstAr{reply.id}));
  EXPECT_EQ(request_of(check).max_tokens, 7u);
  EXPECT_TRUE(request_of(check).begun.ids.empty());
  window.run(CheckCommand(CancelCheck{}));
  // The next question is sent with all of it.
  const Effects effects = window.run(SendMessage{"More"});
  EXPECT_EQ(request_of(effects).turns[1].tokens.ids.size(), 7u);
  window.started();
  window.round("An", " other");
  EXPECT_EQ(log.first_of_reply(3), 3u);
}

TEST(ContinueReply, OnlyTheLastReplyWithKnownTokensOfThisModel) {
  TempFolder folder;
  ContinuedWindow window(folder.path());
  window.limited();
  const uint64_t first = window.reply().id;
  window.view.model->vocabulary = 5;
  EXPECT_NE(continue_obstacle(window.view, window.reply()).find("Another model"), std::string::npos);
  EXPECT_TRUE(window.run(ContinueReply{first}).engine.empty());
  window.view.model->vocabulary = kVocabulary;
  window.view.model_state = ModelState::loading;
  EXPECT_NE(continue_obstacle(window.view, window.reply()), "");
  window.view.model_state = ModelState::ready;
  window.run(SendMessage{"Again"});
  EXPECT_FALSE(is_unfinished(window.view, 1)) << "a question follows it";
  EXPECT_TRUE(window.run(ContinueReply{first}).engine.empty());
  window.started();
  window.round("A", " b");
  window.finished(FinishReason::cancelled, {});
  EXPECT_TRUE(is_unfinished(window.view, 3));
  EXPECT_NE(continue_obstacle(window.view, window.reply()).find("not known"), std::string::npos);
  EXPECT_TRUE(window.run(ContinueReply{window.reply().id}).engine.empty());
}

TEST(ContinueReply, AFailureBeforeItBeginsLeavesTheReplyAsItWas) {
  TempFolder folder;
  ContinuedWindow window(folder.path());
  window.limited();
  const std::string before = json_of(window.view.messages);
  window.run(ContinueReply{window.reply().id});
  window.event(Failure{ErrorKind::out_of_memory, "Memory ran out", "", window.view.reply_id});
  EXPECT_FALSE(window.view.busy());
  EXPECT_EQ(json_of(window.view.messages), before);
  EXPECT_EQ(json_of(on_disk(window, folder)), before);
  EXPECT_EQ(continue_obstacle(window.view, window.reply()), "") << "it can be tried again";
  // One that fails later keeps what came.
  window.run(ContinueReply{window.reply().id});
  window.started(13);
  window.round(" e", " four");
  window.event(Failure{ErrorKind::device_lost, "The device is gone", "", window.view.reply_id});
  EXPECT_EQ(window.reply().text, "One two thr\u00e9 e four");
  EXPECT_EQ(window.reply().result->reason, FinishReason::failed);
  EXPECT_EQ(on_disk(window, folder).back().text, window.reply().text);
}

TEST(ContinueReply, IsOnTheDiskAtEveryMoment) {
  TempFolder folder;
  ContinuedWindow window(folder.path());
  window.limited();
  window.run(ContinueReply{window.reply().id});
  EXPECT_EQ(on_disk(window, folder).back().text, "One two thr\u00e9");
  window.started(11);
  EXPECT_EQ(on_disk(window, folder).back().text, "One two thr");
  window.round("ee", " four");
  Conversation killed = on_disk(window, folder);
  EXPECT_EQ(killed.back().text, "One two three four");
  EXPECT_EQ(killed.back().spans, window.reply().spans);
  EXPECT_EQ(killed.back().result->reason, FinishReason::cancelled);
  window.finished(FinishReason::max_tokens, {1, 2, 3, 4, 9, 6, 7});
  EXPECT_EQ(json_of(on_disk(window, folder)), json_of(window.view.messages));
  // Once more, all in one go: the events of a fast engine are saved together.
  window.run(ContinueReply{window.reply().id});
  update(window.view, Event(ReplyStarted{window.view.reply_id, 10, 9, 1, 8, 18}));
  update(window.view, Event(TextDelta{window.view.reply_id, " five", 8, 10, 10}));
  window.event(window.ending(FinishReason::stop_token, {1, 2, 3, 4, 9, 6, 7, 8}));
  const Conversation all = on_disk(window, folder);
  EXPECT_EQ(all.back().text, "One two three four five");
  EXPECT_EQ(all.back().continued.size(), 2u);
  EXPECT_EQ(json_of(all), json_of(window.view.messages));
}

TEST(ContinueReply, ItsRoundsAreThereWhenTheChatIsOpenedAgain) {
  TempFolder folder;
  std::string chat;
  std::vector<RoundRecord> records;
  {
    ContinuedWindow first(folder.path());
    first.limited();
    first.run(ContinueReply{first.reply().id});
    first.started(13);
    first.round(" e", " four");
    first.finished(FinishReason::max_tokens, {1, 2, 3, 4, 5, 6, 7});
    chat = first.view.messages.id;
    records = first.records;
  }
  {
    ContinuedWindow later(folder.path());
    later.run(OpenChat{chat});
    EXPECT_TRUE(later.view.cards.empty());
    const RoundLog& log = *later.view.rounds.log;
    ASSERT_EQ(log.rounds(), 3u);
    ASSERT_EQ(log.replies().size(), 2u);
    EXPECT_EQ(log.replies()[0].id, later.reply().id);
    EXPECT_EQ(log.replies()[1].id, later.reply().continued.at(0).reply_id);
    EXPECT_EQ(log.first_of_reply(2), 0u);
    for (size_t i = 0; i < 3; ++i) {
      ASSERT_TRUE(log.round(i));
      EXPECT_EQ(log.round(i)->emitted, records[i].emitted);
    }
    // It goes on once more, with rounds that are read from the trace which is then replaced.
    later.run(ContinueReply{later.reply().id});
    later.started(static_cast<uint32_t>(later.reply().text.size()));
    later.round(" a", " five");
    later.finished(FinishReason::stop_token, {1, 2, 3, 4, 5, 6, 7, 8});
    for (size_t i = 0; i < 3; ++i) EXPECT_TRUE(log.round(i)) << i;
    EXPECT_TRUE(later.view.cards.empty());
  }
  ContinuedWindow last(folder.path());
  last.run(OpenChat{chat});
  EXPECT_TRUE(last.view.cards.empty());
  EXPECT_EQ(last.view.rounds.log->rounds(), 4u);
  EXPECT_EQ(last.view.rounds.log->replies().size(), 3u);
  // Nothing but the trace itself is left in the folder.
  size_t files = 0;
  for (const auto& entry : fs::directory_iterator(last.rounds(folder))) files += entry.is_regular_file();
  EXPECT_EQ(files, 1u);
}

// A program that is killed while a reply is written: nothing ended the reply.
TEST(ContinueReply, AfterAKillItGoesOnFromTheTokensThatWereWritten) {
  TempFolder folder;
  std::vector<uint32_t> written;
  std::string chat;
  {
    ContinuedWindow killed(folder.path());
    killed.run(SendMessage{"Tell"});
    killed.started();
    killed.round("One", " two");
    killed.view.chat.now_ms += 1500;  // passes are written once a second
    killed.round("", " three");
    written = killed.reply().so_far.ids;
    ASSERT_EQ(written.size(), 1 + killed.records[0].emitted.size() + killed.records[1].emitted.size());
    chat = killed.view.messages.id;
  }
  {
    ContinuedWindow later(folder.path());
    later.run(OpenChat{chat});
    EXPECT_TRUE(later.view.cards.empty());
    EXPECT_EQ(later.view.chat.note, "");
    const Message& reply = later.reply();
    ASSERT_TRUE(reply.result);
    EXPECT_EQ(reply.text, "One two three");
    EXPECT_EQ(reply.result->reason, FinishReason::cancelled);
    EXPECT_EQ(reply.result->tokens, (TurnTokens{written, {}, kVocabulary}));
    EXPECT_EQ(reply.tokens, written.size());
    EXPECT_EQ(reply.rounds, 2u);
    EXPECT_GE(later.view.rounds.log->rounds(), 1u) << "the trees of what was written a second ago";
    ASSERT_TRUE(is_unfinished(later.view, 1));
    ASSERT_EQ(continue_obstacle(later.view, reply), "");
    const Effects effects = later.run(ContinueReply{reply.id});
    EXPECT_EQ(request_of(effects).begun.ids, written);
    later.started(static_cast<uint32_t>(reply.text.size()));
    later.round("", " four");
    later.finished(FinishReason::stop_token, {1, 2, 3});
    EXPECT_TRUE(later.view.cards.empty());
  }
  ContinuedWindow last(folder.path());
  last.run(OpenChat{chat});
  EXPECT_TRUE(last.view.cards.empty());
  EXPECT_EQ(last.reply().text, "One two three four");
}

TEST(ContinueReply, AfterAKillOfAContinuationItGoesOnToo) {
  TempFolder folder;
  ContinuedWindow window(folder.path());
  window.limited();
  window.run(ContinueReply{window.reply().id});
  window.started(13);
  window.round(" e", " four");
  std::vector<uint32_t> written = window.reply().so_far.ids;
  ASSERT_GT(written.size(), 6u);
  EXPECT_EQ((std::vector<uint32_t>(written.begin(), written.begin() + 5)), (std::vector<uint32_t>{1, 2, 3, 4, 5}));
  const Conversation killed = on_disk(window, folder);
  ASSERT_TRUE(killed.back().result);
  EXPECT_EQ(killed.back().result->tokens, (TurnTokens{written, {}, kVocabulary}));
}

TEST(ContinueReply, AReplyThatWasLeftForAnotherChatGoesOn) {
  TempFolder folder;
  ContinuedWindow window(folder.path());
  window.run(SendMessage{"Tell"});
  window.started();
  window.round("One", " two");
  const std::vector<uint32_t> written = window.reply().so_far.ids;
  const std::string chat = window.view.messages.id;
  window.run(NewChat{});
  window.run(OpenChat{chat});
  EXPECT_EQ(window.reply().result->tokens, (TurnTokens{written, {}, kVocabulary}));
  EXPECT_EQ(window.view.rounds.log->rounds(), 1u);
  ASSERT_EQ(continue_obstacle(window.view, window.reply()), "");
  const Effects effects = window.run(ContinueReply{window.reply().id});
  EXPECT_EQ(request_of(effects).begun.ids, written);
}

TEST(ContinueReply, DamagedIdsAndGapsInThemAreLeftOut) {
  const std::string head =
      "{\"canopy_chat\":1,\"created\":\"2026-01-31T13:45:00.000Z\"}\n"
      "{\"message\":0,\"role\":\"user\",\"text\":\"a\"}\n"
      "{\"message\":1,\"after\":0,\"role\":\"assistant\",\"text\":\"b\",\"writing\":true}\n"
      "{\"grown\":1,\"id\":0,\"ids\":[5,6],\"vocabulary\":9}\n";
  for (const auto& [more, said] : {std::pair{"\"id\":2,\"ids\":[7,-8],\"vocabulary\":9", "a token is -8"},
                                   std::pair{"\"id\":2,\"ids\":{},\"vocabulary\":9", "ids"},
                                   std::pair{"\"id\":3,\"ids\":[7],\"vocabulary\":9", ""},
                                   std::pair{"\"id\":2,\"ids\":[7],\"vocabulary\":-9", "\"vocabulary\" is -9"}}) {
    uint64_t ids = 0;
    const JournalRead read = read_journal(head + "{\"grown\":1," + more + "}\n", ids);
    EXPECT_EQ(read.problem, "") << more;
    EXPECT_NE(read.note.find(said), std::string::npos) << read.note;
    EXPECT_EQ(read.note.empty(), std::string(said).empty()) << more;
    EXPECT_EQ(read.conversation.back().text, "b");
    EXPECT_EQ(read.conversation.back().result->tokens, (TurnTokens{{5, 6}, {}, 9})) << more;
  }
}

TEST(ContinueReply, NothingGoesOnInsideACharacterOrBehindTheText) {
  const std::string head =
      "{\"canopy_chat\":1,\"created\":\"2026-01-31T13:45:00.000Z\"}\n"
      "{\"message\":0,\"role\":\"assistant\",\"text\":\"thr\u00e9\"}\n";
  for (const char* at : {"4", "6"}) {
    uint64_t ids = 0;
    const JournalRead read = read_journal(head + "{\"continued\":0,\"part\":1,\"round\":0,\"at\":" + at + "}\n", ids);
    EXPECT_NE(read.problem.find("goes on at byte " + std::string(at) + " of 5"), std::string::npos) << read.problem;
    EXPECT_EQ(read.conversation.back().text, "thr\u00e9");
  }
}

TEST(ContinueReply, DamagedListsOfPartsAreNamed) {
  uint64_t ids = 0;
  const std::string head = "{\"canopy_chat\":1,\"created\":\"2026-01-31T13:45:00.000Z\"}\n";
  const std::string message = "{\"message\":0,\"role\":\"assistant\",\"text\":\"a\",\"continued\":[[1,\"x\"]]}\n";
  const JournalRead read = read_journal(head + message, ids);
  EXPECT_NE(read.problem.find("\"continued\" holds [1,\"x\"]"), std::string::npos) << read.problem;
  const JournalRead gone = read_journal(head + "{\"continued\":3,\"part\":1,\"round\":0,\"at\":0}\n", ids);
  EXPECT_NE(gone.problem.find("message 3 goes on, which is not there"), std::string::npos) << gone.problem;
}

}  // namespace
}  // namespace canopy::app
