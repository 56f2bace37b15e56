// A reply of the running engine as a page: taken hold of by the window, read by a thread, and independent of the log.

#include "app/export/shared_run.h"

#include <gtest/gtest.h>

#include <memory>
#include <stop_token>

#include "app/export/animation.h"
#include "app/export/recording_page.h"
#include "app/export/round_picture.h"
#include "app/state/conversation.h"
#include "app/tree/tree_model.h"
#include "engine/trace/trace_records.h"
#include "tests/base/expect_error.h"
#include "tests/base/temp_folder.h"
#include "tests/trace/trace_builder.h"
#include "tests/trace/trace_compare.h"

namespace canopy::app {
namespace {

using test::expect_error;

class LiveRun : public testing::Test {
 protected:
  /// A reply of so many rounds in log and chat.
  void write(uint64_t id, size_t rounds) { write(id, rounds, log_); }
  void write(uint64_t id, size_t rounds, LiveLog& log) {
    Message question, reply;
    question.id = id - 1;
    question.text = "Why is question " + std::to_string(id) + "?";
    reply.id = id;
    reply.role = Role::assistant;
    Generate request;
    request.reply_id = id;
    log.expect(request, id);
    builder_.begin();
    for (size_t i = 0; i < rounds; ++i) {
      auto record = std::make_shared<RoundRecord>(builder_.tree(12));
      for (size_t node = 1; node < record->nodes.size(); ++node) record->nodes[node].node.sources = sources_;
      log.take(Event(RoundFinished{id, record, 0, 0, {}, false}));
      const auto begin = static_cast<uint32_t>(reply.text.size());
      std::vector<uint32_t> ends;
      for (size_t token = 0; token < record->emitted.size(); ++token) {
        reply.text += "word ";
        ends.push_back(static_cast<uint32_t>(reply.text.size()));
      }
      append_spans(reply, *record, static_cast<uint32_t>(i), begin, ends);
    }
    reply.rounds = static_cast<uint32_t>(rounds);
    chat_.append(question);
    chat_.append(reply);
  }

  test::TraceBuilder builder_;
  DraftSources sources_ = 0;  // of the guesses of later rounds
  LiveLog log_;
  Conversation chat_;
};

TEST_F(LiveRun, HasTheReplyOfTheRoundWithItsQuestion) {
  write(11, 4);
  write(21, 6);
  const LiveReply live = live_reply(log_, chat_, 5);
  EXPECT_EQ(live.shown, 1u);
  const SharedRun run = read_run(live);
  EXPECT_EQ(run.log->rounds(), 6u);
  ASSERT_EQ(run.replies.size(), 1u);
  EXPECT_EQ(run.replies[0].question, "Why is question 21?");
  EXPECT_EQ(run.log->round(1)->emitted, log_.round(5)->emitted);
  const std::string page = recording_page(run, {0, 6});
  EXPECT_NE(page.find("Why is question 21?"), std::string::npos);
  EXPECT_EQ(page.find("Why is question 11?"), std::string::npos);
  EXPECT_FALSE(animated_svg(run, {0, 1}, ThemeKind::dark, {480, 400}).empty());
}

TEST_F(LiveRun, StaysAsItWasWhenMoreIsWritten) {
  write(11, 3);
  const SharedRun run = read_run(live_reply(log_, chat_, 0));
  const std::string before = recording_page(run, {0, 3});
  write(21, 3);
  EXPECT_EQ(run.log->rounds(), 3u);
  EXPECT_EQ(recording_page(run, {0, 3}), before);
}

/// What the window does must not grow with the reply: a tree that is gone is found by the thread.
TEST_F(LiveRun, ReadsNothingUntilTheThreadDoes) {
  LiveLog log(1, RoundSpill("/proc/canopy-nowhere"));  // keeps the newest tree alone
  write(11, 4, log);
  LiveReply live;
  ASSERT_NO_THROW(live = live_reply(log, chat_, 3));
  expect_error("The tree of pass 1 of this reply is no longer in memory", [&] { read_run(live); });
}

TEST_F(LiveRun, IsReadWhenTheLogHasGone) {
  const test::TempFolder folder;
  auto log = std::make_unique<LiveLog>(1, RoundSpill(folder.path()));
  write(11, 5, *log);
  const auto first = log->round(0);
  const LiveReply live = live_reply(*log, chat_, 2);
  log.reset();
  const SharedRun run = read_run(live);
  ASSERT_EQ(run.log->rounds(), 5u);
  test::expect_same(*run.log->round(0), *first);
  EXPECT_FALSE(recording_page(run, {0, 5}).empty());
}

/// The live view may show them; what is given away does not.
TEST_F(LiveRun, HasNoWrongGuessOfAnotherChat) {
  sources_ = kFromEarlier;
  write(11, 3);
  ASSERT_TRUE(has_other_chats(*log_.round(1)));
  const SharedRun run = read_run(live_reply(log_, chat_, 1));
  for (size_t i = 0; i < 3; ++i) EXPECT_FALSE(has_other_chats(*run.log->round(i)));
  EXPECT_EQ(run.log->round(1)->emitted, log_.round(1)->emitted);
  EXPECT_NE(recording_page(run, {0, 3}).find(trace::other_chats_words), std::string::npos);
  const RoundCard card(log_, 1, {1280, 720});
  EXPECT_FALSE(has_other_chats(card.record())) << "nor has a picture of the log itself";
  const TreeModel tree = tree_of_round(card.record(), log_, 1);
  const auto labels = tree_labels(tree, log_);
  for (uint32_t i = 1; i < tree.size(); ++i)
    EXPECT_EQ(labels[i] == trace::other_chats_words, is_of_other_chat(tree.nodes[i])) << i;
}

TEST_F(LiveRun, IsNotReadToItsEndWhenTheExportIsCancelled) {
  write(11, 3);
  std::stop_source stop;
  stop.request_stop();
  try {
    read_run(live_reply(log_, chat_, 0), {{}, stop.get_token()});
    ADD_FAILURE() << "it was read";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::cancelled);
  }
}

TEST_F(LiveRun, RefusesWhatIsNotThere) {
  expect_error("no pass", [&] { live_reply(log_, chat_, 0); });
  write(11, 3);
  const Conversation other;
  expect_error("does not have the reply", [&] { live_reply(log_, other, 0); });
}

}  // namespace
}  // namespace canopy::app
