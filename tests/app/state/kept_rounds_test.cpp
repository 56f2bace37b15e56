// The rounds of a chat are there when it is opened again: in another window, by switching chats, and not with another
// chat's, nor with damaged files.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "app/state/chat.h"
#include "app/state/live_log.h"
#include "app/state/words.h"
#include "tests/app/support/chat_window.h"
#include "tests/app/support/time_zone.h"
#include "tests/base/full_disk.h"
#include "tests/base/temp_folder.h"
#include "tests/trace/trace_builder.h"

namespace canopy::app {
namespace {

namespace fs = std::filesystem;
using test::TempFolder;
using test::TimeZone;
using test::TraceBuilder;

ModelReady model_of_file(const std::string& name) {
  ModelReady model = test::small_model();
  model.file_name = name;
  return model;
}

class RoundsWindow : public test::ChatWindow {
 public:
  explicit RoundsWindow(const fs::path& folder, const std::string& model = "small.gguf")
      : ChatWindow(folder, model_of_file(model)) {}
  void begin(const std::string& question, size_t rounds) {
    run(SendMessage{question});
    write(rounds);
  }
  void write(size_t rounds) {
    event(TextDelta{view.reply_id, "An answer", 1, 10, 10});
    builder.begin(DecodeMode::tree);
    for (size_t i = 0; i < rounds; ++i) {
      records.push_back(builder.tree(12));
      event(RoundFinished{view.reply_id, std::make_shared<const RoundRecord>(records.back()), 0, 0, {}, false});
    }
  }
  void ask(const std::string& question, size_t rounds) {
    begin(question, rounds);
    finish();
  }
  void finish() {
    ReplyFinished finished;
    finished.reply_id = view.reply_id;
    finished.ar_tokens_per_second = 12.5;
    event(finished);
  }
  const RoundLog& log() const { return *view.rounds.log; }

  TraceBuilder builder;
  std::vector<RoundRecord> records;
};

fs::path folder_of(const RoundsWindow& window, const TempFolder& folder) {
  return folder.path() / (window.view.messages.id + ".rounds");
}

TEST(KeptRounds, AChatOpenedLaterHasItsTreesAndFigures) {
  TempFolder folder;
  RoundsWindow first(folder.path());
  first.ask("One", 3);
  first.ask("Two", 2);
  RoundsWindow later(folder.path());
  ASSERT_EQ(later.log().rounds(), 0u);
  later.run(OpenChat{first.view.messages.id});
  ASSERT_EQ(later.log().rounds(), 5u);
  EXPECT_TRUE(later.view.cards.empty());
  for (size_t i = 0; i < 5; ++i) {
    ASSERT_TRUE(later.log().round(i)) << i;
    EXPECT_EQ(later.log().round(i)->nodes.size(), first.records[i].nodes.size());
    EXPECT_EQ(later.log().round(i)->emitted, first.records[i].emitted);
    EXPECT_EQ(later.log().summary(i).accepted, first.log().summary(i).accepted);
  }
  ASSERT_EQ(later.log().replies().size(), 2u);
  // A click on a word finds its reply by the id of the message.
  EXPECT_EQ(later.log().replies()[1].id, later.view.messages[3].id);
  EXPECT_EQ(later.log().replies()[1].ar_tokens_per_second, later.view.messages[3].result->ar_tokens_per_second);
  EXPECT_EQ(later.view.rounds.playback.shown, 4u);

  later.ask("Three", 1);  // goes on behind them
  ASSERT_EQ(later.log().rounds(), 6u);
  EXPECT_EQ(later.log().round(5)->emitted, later.records.back().emitted);
  EXPECT_EQ(later.log().round(0)->emitted, first.records[0].emitted);
}

TEST(KeptRounds, TheTimelineBelongsToTheChatOnShow) {
  TempFolder folder;
  RoundsWindow window(folder.path());
  window.ask("One", 3);
  const std::string one = window.view.messages.id;
  window.run(NewChat{});
  EXPECT_EQ(window.log().rounds(), 0u);
  window.ask("Two", 1);
  EXPECT_EQ(window.log().rounds(), 1u);
  window.run(OpenChat{one});
  EXPECT_EQ(window.log().rounds(), 3u);
  window.begin("Three", 2);  // left while it is being written
  window.run(NewChat{});
  window.run(OpenChat{one});
  EXPECT_EQ(window.log().rounds(), 5u);
}

TEST(KeptRounds, TheTreeIsThatOfTheBranchOnShow) {
  TempFolder folder;
  RoundsWindow window(folder.path());
  window.ask("One", 3);
  window.run(AnswerAgain{window.view.messages.back().id});
  window.write(2);
  window.finish();
  EXPECT_EQ(window.view.rounds.playback.shown, 4u);
  window.run(ShowAlternative{window.view.messages.back().id, -1});
  EXPECT_EQ(window.view.rounds.playback.shown, 2u) << "the last round of the first answer";
  EXPECT_FALSE(window.view.rounds.behind_live());
  window.run(ShowAlternative{window.view.messages.back().id, 1});
  EXPECT_EQ(window.view.rounds.playback.shown, 4u);
  window.run(ShowAlternative{window.view.messages.back().id, -1});
  RoundsWindow later(folder.path());
  later.desk.reopen(later.view, window.view.messages.id);
  ASSERT_EQ(later.log().rounds(), 5u);
  EXPECT_EQ(later.view.rounds.playback.shown, 2u);
  for (RoundsWindow* each : {&window, &later}) {
    each->ask("Two", 1);
    EXPECT_EQ(each->view.rounds.playback.shown, 5u) << "what is written now is followed";
    EXPECT_EQ(each->view.rounds.playback.state, PlayState::following);
  }
}

TEST(KeptRounds, DamagedAndForeignFilesCostOnlyTheirOwnRounds) {
  TempFolder folder;
  RoundsWindow first(folder.path());
  first.ask("One", 3);
  first.ask("Two", 2);
  first.ask("Three", 1);
  const fs::path rounds = folder_of(first, folder);
  fs::resize_file(reply_trace(rounds, 1), fs::file_size(reply_trace(rounds, 1)) - 9);
  std::ofstream(reply_trace(rounds, 3)) << "no trace at all";
  RoundsWindow later(folder.path());
  later.run(OpenChat{first.view.messages.id});
  EXPECT_EQ(later.view.messages.size(), 6u);
  EXPECT_EQ(later.log().rounds(), 1u);
  ASSERT_EQ(later.view.cards.size(), 1u);
  EXPECT_NE(later.view.cards[0].detail.find("1.canopytrace"), std::string::npos) << later.view.cards[0].detail;

  fs::copy_file(reply_trace(rounds, 5), reply_trace(rounds, 1), fs::copy_options::overwrite_existing);
  EXPECT_THROW(open_reply_trace(rounds, 1, "An answer"), Error);
  fs::remove_all(rounds);
  RoundsWindow without(folder.path());
  without.run(OpenChat{first.view.messages.id});
  EXPECT_EQ(without.log().rounds(), 0u);
  EXPECT_TRUE(without.view.cards.empty());
}

TEST(KeptRounds, AnotherModelKeepsThemUntilItWrites) {
  TempFolder folder;
  RoundsWindow first(folder.path());
  first.ask("One", 3);
  RoundsWindow later(folder.path(), "other.gguf");
  later.run(OpenChat{first.view.messages.id});
  EXPECT_EQ(later.log().rounds(), 3u);
  later.event(*later.view.model);
  EXPECT_EQ(later.log().rounds(), 3u);
  later.ask("Two", 1);
  EXPECT_EQ(later.log().rounds(), 1u);
  EXPECT_EQ(later.log().round(0)->emitted, later.records[0].emitted);
}

TEST(KeptRounds, OnAFullDiskNothingIsSaidToBeSaved) {
  const TempFolder folder;
  RoundsWindow window(folder.path());
  {
    const test::FullDisk full;
    window.ask("Question", 2);
  }
  ASSERT_EQ(window.view.cards.size(), 2u);
  EXPECT_EQ(window.view.cards[0].title, "The chat is not saved");
  EXPECT_EQ(window.view.cards[1].title, "The passes of a reply are not saved");
  EXPECT_EQ(window.view.cards[1].detail.find("The chat itself"), std::string::npos) << window.view.cards[1].detail;
}

TEST(KeptRounds, GoAndComeBackWithTheirChat) {
  TempFolder folder;
  RoundsWindow window(folder.path());
  window.ask("One", 3);
  const std::string id = window.view.messages.id;
  const fs::path rounds = folder_of(window, folder);
  window.run(DeleteChat{id});
  EXPECT_FALSE(fs::exists(rounds));
  EXPECT_EQ(window.log().rounds(), 0u);
  window.run(UndoDelete{});
  window.run(OpenChat{id});
  EXPECT_EQ(window.log().rounds(), 3u);
}

TEST(KeptRounds, TheOldestAreDroppedFirst) {
  TempFolder folder;
  RoundsWindow window(folder.path());
  for (const char* question : {"One", "Two", "Three"}) window.ask(question, 2);
  const fs::path rounds = folder_of(window, folder);
  limit_reply_traces(rounds, fs::file_size(reply_trace(rounds, 3)) + fs::file_size(reply_trace(rounds, 5)));
  EXPECT_FALSE(fs::exists(reply_trace(rounds, 1)));
  EXPECT_TRUE(fs::exists(reply_trace(rounds, 3)));
  limit_reply_traces(rounds, 0);
  EXPECT_FALSE(fs::exists(reply_trace(rounds, 3)));
  EXPECT_TRUE(fs::exists(reply_trace(rounds, 5)));
}

TEST(LocalTime, FollowsTheZoneOfTheUser) {
  constexpr int64_t kMoment = 1'763'769'600'999;  // 2025-11-22 00:00:00.999 UTC
  {
    TimeZone zone("EST5");
    EXPECT_EQ(local_time(kMoment), "2025-11-21 19:00:00");
    EXPECT_EQ(local_time_and_zone(kMoment), "2025-11-21 19:00:00 -05:00");
    EXPECT_EQ(local_minute(kMoment), "2025-11-21 19:00");
    constexpr int64_t kNewYear = 1'767'225'600'000;  // 2026-01-01 00:00:00 UTC
    EXPECT_EQ(local_time_and_zone(kNewYear), "2025-12-31 19:00:00 -05:00");
  }
  TimeZone zone("IST-5:30");
  EXPECT_EQ(local_time(kMoment), "2025-11-22 05:30:00");
  EXPECT_EQ(local_time(-1), "1970-01-01 05:29:59");
  Conversation chat;
  Message message;
  message.text = "Hello";
  message.created_ms = kMoment;
  chat.append(std::move(message));
  EXPECT_NE(markdown_of(chat).find("_2025-11-22 05:30:00 +05:30_"), std::string::npos) << markdown_of(chat);
  EXPECT_NE(json_of(chat).find("2025-11-22T00:00:00.999Z"), std::string::npos) << json_of(chat);
}

TEST(LocalTime, TheMomentOfARecordingIsReadFromItsText) {
  EXPECT_EQ(moment_in("1970-01-01T00:00:01Z"), 1000);
  EXPECT_EQ(moment_in("2025-11-22T00:00:00Z"), 1'763'769'600'000);
  for (const char* other : {"", "yesterday", "2025-11-22T00:00:00", "2025-11-22T00:00:00Z ", "2025-13-22T00:00:00Z",
                            "2025-02-30T00:00:00Z", "2025-11-22T24:00:00Z", "2025-11-22 00:00:00 UTC"})
    EXPECT_FALSE(moment_in(other)) << other;
}

}  // namespace
}  // namespace canopy::app
