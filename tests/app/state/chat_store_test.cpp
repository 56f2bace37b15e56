// Chats on the disk: killed programs, damage, several windows, full and missing disks.

#include "app/state/chat_store.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "app/state/chat.h"
#include "app/state/chat_journal.h"
#include "engine/base/mapped_file.h"
#include "tests/app/support/chat_window.h"
#include "tests/base/full_disk.h"
#include "tests/base/temp_folder.h"

namespace canopy::app {
namespace {

namespace fs = std::filesystem;
using test::FullDisk;
using test::small_model;
using test::TempFolder;

class Window : public test::ChatWindow {
 public:
  using ChatWindow::ChatWindow;
  void ask(const std::string& question, const std::string& reply) {
    run(SendMessage{question});
    event(TextDelta{view.reply_id, reply, 1, 10, 10});
    ReplyFinished finished;
    finished.reply_id = view.reply_id;
    event(finished);
  }
};

/// Ends the reply that is being written.
void finish(Window& window, const std::string& reply) {
  window.event(TextDelta{window.view.reply_id, reply, 1, 10, 10});
  ReplyFinished finished;
  finished.reply_id = window.view.reply_id;
  window.event(finished);
}

size_t files_in(const fs::path& folder) {
  size_t count = 0;
  for (const auto& entry : fs::directory_iterator(folder)) count += entry.is_regular_file();
  return count;
}

/// Path of the only chat in a folder.
fs::path only_file(const fs::path& folder) {
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.is_regular_file()) return entry.path();
  return {};
}

/// Writes a reply word by word until the process is killed, and reports after each word how many were shown.
[[noreturn]] void write_forever(const fs::path& folder, int pipe) {
  Window window(folder);
  window.run(SendMessage{"Count, please"});
  for (uint32_t n = 0;; ++n) {
    window.event(TextDelta{window.view.reply_id, "w" + std::to_string(n) + " \u4f60 ", n, 10, 10});
    if (::write(pipe, &n, sizeof n) != sizeof n) _exit(1);
  }
}

TEST(ChatStore, TokensOfAReplyAreKeptWithItAndGoIntoTheNextPrompt) {
  const TempFolder folder;
  std::string id;
  const TurnTokens written = {{5, 0, 4294967295}, {2}, 18446744073709551615u};
  {
    Window window(folder.path());
    window.run(SendMessage{"Say"});
    window.event(TextDelta{window.view.reply_id, "It", 2, 10, 10});
    window.event(TextDelta{window.view.reply_id, " is", 4, 10, 10});
    ReplyFinished finished;
    finished.reply_id = window.view.reply_id;
    finished.reply_tokens = 4;
    finished.tokens = written;
    window.event(finished);
    id = window.view.messages.id;
  }
  Window window(folder.path());
  window.run(OpenChat{id});
  ASSERT_EQ(window.view.messages.size(), 2u);
  EXPECT_EQ(window.view.messages.back().result->tokens, written);
  EXPECT_EQ(window.view.chat.note, "");
  const Effects effects = update(window.view, UiCommand(SendMessage{"Go on"}));
  const auto& turns = std::get<Generate>(effects.engine.at(0)).turns;
  ASSERT_EQ(turns.size(), 3u);
  EXPECT_EQ(turns[0].tokens, TurnTokens());
  EXPECT_EQ(turns[1].content, "It is");
  EXPECT_EQ(turns[1].tokens, written);
}

TEST(ChatStore, DamagedTokensAreLeftOutAndTheTextStays) {
  const std::string kept = R"("token_ids":{"vocabulary":9,"ids":[5,6,7],"ending":[2]})";
  const std::pair<std::string, std::string> cases[] = {
      {kept, ""},
      {R"("rest":1)", ""},  // as files were before they had any
      {R"("token_ids":[5,6,7,2])", "must be an object"},
      {R"("token_ids":{"vocabulary":9,"ids":[5,6],"ending":[2]})", "are 3; the reply has 4"},
      {R"("token_ids":{"vocabulary":9,"ids":[5,-6,7],"ending":[2]})", "a token is -6"},
      {R"("token_ids":{"vocabulary":9,"ids":[5,4294967296,7],"ending":[2]})", "a token is 4294967296"},
      {R"("token_ids":{"vocabulary":9,"ids":[5,6,7],"ending":["x"]})", "a token is \"x\""},
      {R"("token_ids":{"vocabulary":-1,"ids":[5,6,7],"ending":[2]})", "\"vocabulary\" is -1"},
      {R"("token_ids":{"vocabulary":9,"ending":[2]})", "ids"},
  };
  for (const auto& [field, said] : cases) {
    SCOPED_TRACE(field);
    const std::string file =
        "{\"canopy_chat\":1}\n{\"message\":0,\"role\":\"user\",\"text\":\"Say\"}\n"
        "{\"message\":1,\"after\":0,\"role\":\"assistant\",\"text\":\"It is\",\"tokens\":4,"
        "\"result\":{\"ended\":\"stop token\"}," +
        field + "}\n";
    uint64_t last_id = 0;
    const JournalRead read = read_journal(file, last_id);
    EXPECT_EQ(read.problem, "");
    ASSERT_EQ(read.conversation.size(), 2u);
    EXPECT_EQ(read.conversation.back().text, "It is");
    EXPECT_EQ(read.conversation.back().result->tokens, field == kept ? (TurnTokens{{5, 6, 7}, {2}, 9}) : TurnTokens());
    EXPECT_EQ(read.note.empty(), said.empty());
    EXPECT_NE(read.note.find(said), std::string::npos) << read.note;
  }
}

TEST(ChatStore, AKillLosesNothingThatWasShown) {  // gui.md, criterion 19: kill -9
  const TempFolder folder;
  int pipes[2];
  ASSERT_EQ(::pipe(pipes), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::close(pipes[0]);
    write_forever(folder.path(), pipes[1]);
  }
  ::close(pipes[1]);
  uint32_t shown = 0;
  while (shown < 300) ASSERT_EQ(::read(pipes[0], &shown, sizeof shown), static_cast<ssize_t>(sizeof shown));
  ASSERT_EQ(::kill(child, SIGKILL), 0);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  for (uint32_t more; ::read(pipes[0], &more, sizeof more) == sizeof more;) shown = more;
  ::close(pipes[0]);

  Window window(folder.path());
  ASSERT_EQ(window.view.chat.listings.size(), 1u);
  EXPECT_EQ(window.view.chat.listings[0].title, "Count, please");
  window.run(OpenChat{window.view.chat.listings[0].id});
  ASSERT_EQ(window.view.messages.size(), 2u);
  EXPECT_TRUE(window.view.cards.empty()) << window.view.cards[0].detail;
  const Message reply = window.view.messages.back();  // a copy, as later messages move this one in memory
  EXPECT_NE(reply.text.find("w" + std::to_string(shown) + " \u4f60"), std::string::npos);
  EXPECT_FALSE(reply.writing);
  EXPECT_EQ(reply.result->reason, FinishReason::cancelled);
  // The chat continues in the same file.
  window.ask("And now?", "On we go.");
  EXPECT_EQ(files_in(folder.path()), 1u);
  Window later(folder.path());
  later.run(OpenChat{later.view.chat.listings[0].id});
  ASSERT_EQ(later.view.messages.size(), 4u);
  EXPECT_EQ(later.view.messages[1].text, reply.text);
  EXPECT_EQ(later.view.messages[3].text, "On we go.");
}

TEST(ChatStore, ChatsAreListedNewestFirstAndFoundByTheirWords) {
  const TempFolder folder;
  Window window(folder.path());
  window.ask("Explain merge sort", "It merges.");
  window.run(NewChat{});
  window.ask("Why is the sky blue?", "Because of Rayleigh scattering of \u4f60\u597d light.");
  ASSERT_EQ(window.view.chat.listings.size(), 2u);
  EXPECT_EQ(window.view.chat.listings[0].title, "Why is the sky blue?");
  window.run(SearchChats{"RAYLEIGH"});
  ASSERT_EQ(window.view.chat.listings.size(), 1u);
  EXPECT_NE(window.view.chat.listings[0].excerpt.find("Rayleigh"), std::string::npos);
  window.run(SearchChats{"quicksort"});
  EXPECT_TRUE(window.view.chat.listings.empty());
  window.run(SearchChats{""});
  window.run(OpenChat{window.view.chat.listings[1].id});
  EXPECT_EQ(window.view.messages.back().text, "It merges.");
}

TEST(ChatStore, ChatsAreFoundInEitherCaseOfEveryScript) {
  const TempFolder folder;
  Window window(folder.path());
  window.ask("Привет, мир", "\u1E9E Äpfel und Öl aus İstanbul");
  window.run(NewChat{});
  window.ask("Kueche", "Yes");
  for (const char* wanted : {"привет", "Привет", "äpfel", "a\u0308pfel", "ÖL", "istanbul", "SS Äp"}) {
    window.run(SearchChats{wanted});
    ASSERT_EQ(window.view.chat.listings.size(), 1u) << wanted;
    EXPECT_EQ(window.view.chat.listings[0].title, "Привет, мир") << wanted;
  }
  window.run(SearchChats{"ÖL AUS"});
  EXPECT_NE(window.view.chat.listings.at(0).excerpt.find("Öl aus İstanbul"), std::string::npos);
  window.run(SearchChats{"apfel"});
  EXPECT_TRUE(window.view.chat.listings.empty());
  window.run(SearchChats{"KUECHE"});
  EXPECT_EQ(window.view.chat.listings.size(), 1u);
}

TEST(ChatStore, ADeletedChatComesBackWhole) {
  const TempFolder folder;
  Window window(folder.path());
  window.ask("Keep me", "Yes");
  const std::string before = read_small_file(only_file(folder.path()), 1 << 20);
  const std::string id = window.view.messages.id;
  const Effects deleted = window.run(DeleteChat{id});
  ASSERT_EQ(deleted.engine.size(), 1u) << "guesses come from its replies no more";
  EXPECT_EQ(std::get<ForgetReplies>(deleted.engine[0]).chat, id);
  EXPECT_TRUE(window.view.messages.empty());
  EXPECT_TRUE(window.view.chat.listings.empty());
  EXPECT_EQ(files_in(folder.path()), 0u);
  window.run(UndoDelete{});
  ASSERT_EQ(window.view.chat.listings.size(), 1u);
  EXPECT_EQ(read_small_file(only_file(folder.path()), 1 << 20), before);
  window.run(OpenChat{window.view.chat.listings[0].id});
  EXPECT_EQ(window.view.messages.back().text, "Yes");
}

TEST(ChatStore, ADamagedFileIsSetAsideUntouchedAndItsRestIsShown) {
  const TempFolder folder;
  {
    Window window(folder.path());
    window.ask("First", "Read me");
    window.ask("Second", "And me");
  }
  const fs::path path = only_file(folder.path());
  std::string bytes = read_small_file(path, 1 << 20);
  bytes.insert(bytes.rfind("{\"message\""), "\x01\x02 garbage\n");
  std::ofstream(path, std::ios::binary) << bytes;
  Window window(folder.path());
  window.run(OpenChat{path.stem().string()});
  ASSERT_EQ(window.view.cards.size(), 1u);
  EXPECT_NE(window.view.cards[0].detail.find("damaged"), std::string::npos);
  EXPECT_EQ(read_small_file(folder.path() / "damaged" / path.filename(), 1 << 20), bytes);
  EXPECT_GE(window.view.messages.size(), 3u);
  EXPECT_NE(only_file(folder.path()), path) << "what was read has a file of its own";
  EXPECT_EQ(files_in(folder.path()), 1u);
}

TEST(ChatStore, TwoWindowsDoNotDestroyEachOthersChats) {
  const TempFolder folder;
  Window first(folder.path());
  first.ask("Shared", "One");
  const std::string id = first.view.messages.id;
  Window second(folder.path());
  second.run(OpenChat{id});
  ASSERT_EQ(second.view.messages.size(), 2u);
  EXPECT_EQ(files_in(folder.path()), 1u) << "reading makes no copy";
  second.ask("From the second", "Two");
  EXPECT_NE(second.view.messages.id, id) << "the first window writes to that file";
  first.ask("From the first", "Three");
  second.run(DeleteChat{id});
  ASSERT_FALSE(second.view.cards.empty());
  EXPECT_NE(second.view.cards.back().detail.find("another window"), std::string::npos);
  Window third(folder.path());
  ASSERT_EQ(third.view.chat.listings.size(), 2u);
  for (const auto& [file, last] :
       {std::pair(id, std::string("Three")), std::pair(second.view.messages.id, std::string("Two"))}) {
    third.run(OpenChat{file});
    EXPECT_EQ(third.view.messages.size(), 4u);
    EXPECT_EQ(third.view.messages.back().text, last);
  }
}

TEST(ChatStore, WhatAnotherWindowAddedMeanwhileIsNotMixedUp) {
  const TempFolder folder;
  std::string id;
  {
    Window first(folder.path());
    first.ask("Shared", "One");
    id = first.view.messages.id;
  }
  Window reader(folder.path());
  reader.run(OpenChat{id});
  {
    Window writer(folder.path());
    writer.run(OpenChat{id});
    writer.ask("Written meanwhile", "Kept");
  }
  reader.ask("Mine", "Also kept");
  Window last(folder.path());
  last.run(OpenChat{id});
  EXPECT_EQ(last.view.messages.back().text, "Kept");
  last.run(OpenChat{reader.view.messages.id});
  EXPECT_EQ(last.view.messages.back().text, "Also kept");
}

TEST(ChatStore, PinnedChatsStandOnTopAndStayPinned) {
  const TempFolder folder;
  Window window(folder.path());
  window.ask("The oldest", "Yes");
  const std::string oldest = window.view.messages.id;
  window.run(NewChat{});
  window.ask("The middle one", "Yes");
  window.run(NewChat{});
  window.ask("The newest", "Yes");
  window.run(PinChat{true, oldest});
  const auto titles = [](const Window& of) {
    std::vector<std::string> all;
    for (const ChatListing& each : of.view.chat.listings) all.push_back(each.title);
    return all;
  };
  const std::vector<std::string> pinned = {"The oldest", "The newest", "The middle one"};
  EXPECT_EQ(titles(window), pinned);
  Window later(folder.path());
  EXPECT_EQ(titles(later), pinned);
  later.run(OpenChat{oldest});
  EXPECT_TRUE(later.view.messages.pinned);
  later.run(PinChat{false});  // the chat on show
  EXPECT_EQ(titles(later), (std::vector<std::string>{"The newest", "The middle one", "The oldest"}));
  EXPECT_EQ(later.view.messages.id, oldest) << "no copy is made of it";
  EXPECT_EQ(files_in(folder.path()), 3u);
}

TEST(ChatStore, AChatThatIsNotOnShowIsRenamed) {
  const TempFolder folder;
  Window window(folder.path());
  window.ask("First question", "Yes");
  const std::string first = window.view.messages.id;
  window.run(NewChat{});
  window.ask("Second question", "Yes");
  window.run(RenameChat{"Its own name", first});
  EXPECT_EQ(window.view.messages.shown_title(), "Second question");
  ASSERT_EQ(window.view.chat.listings.size(), 2u);
  EXPECT_EQ(window.view.chat.listings[1].title, "Its own name");
  window.run(OpenChat{first});
  EXPECT_EQ(window.view.messages.title, "Its own name");
  EXPECT_EQ(window.view.messages.back().text, "Yes");
  window.run(RenameChat{"Nothing", "no-such-chat"});
  ASSERT_EQ(window.view.cards.size(), 1u);
  EXPECT_EQ(window.view.cards[0].title, "The chat cannot be changed");
}

TEST(ChatStore, TheLastChatIsReopenedOnTheBranchThatWasLeft) {
  const TempFolder folder;
  Window window(folder.path());
  window.ask("Otters", "They swim.");
  window.ask("More", "They eat.");
  window.run(AnswerAgain{window.view.messages.back().id});
  finish(window, "They sleep.");
  window.run(ShowAlternative{window.view.messages.back().id, -1});
  const std::string id = window.view.messages.id;
  const auto last = [&] {
    Window later(folder.path());
    EXPECT_TRUE(later.view.messages.empty());
    later.desk.reopen(later.view, id);
    EXPECT_EQ(later.view.messages.id, id);
    EXPECT_EQ(files_in(folder.path()), 1u);
    return later.view.messages.empty() ? "" : later.view.messages.back().text;
  };
  EXPECT_EQ(last(), "They eat.");
  window.run(EditQuestion{window.view.messages[0].id, "A Python class"});
  EXPECT_EQ(last(), "") << "the reply that is being written";
  finish(window, "class Point");
  EXPECT_EQ(last(), "class Point");
  window.ask("Go on", "pass");
  EXPECT_EQ(last(), "pass");
  window.run(ShowAlternative{window.view.messages[0].id, -1});
  EXPECT_EQ(last(), "They eat.") << "of the otters the version that was on show";
}

// Canopy up to 2026-11 wrote no leaf after an edit, and took the last one that there was.
TEST(ChatStore, AMessageThatFollowsALeafInTheFileIsOnShow) {
  const std::string file =
      "{\"canopy_chat\":1}\n"
      "{\"message\":0,\"role\":\"user\",\"text\":\"One\"}\n"
      "{\"message\":1,\"after\":0,\"role\":\"assistant\",\"text\":\"A\"}\n"
      "{\"message\":2,\"after\":0,\"role\":\"assistant\",\"text\":\"B\"}\n"
      "{\"leaf\":1}\n"
      "{\"message\":3,\"role\":\"user\",\"text\":\"Uno\"}\n"
      "{\"message\":4,\"after\":3,\"role\":\"assistant\",\"text\":\"C\"}\n";
  uint64_t last_id = 0;
  JournalRead read = read_journal(file, last_id);
  EXPECT_EQ(read.problem, "");
  EXPECT_FALSE(read.conversation.pinned);
  EXPECT_EQ(read.conversation.back().text, "C");
  read.conversation.show_alternative(0, -1);
  EXPECT_EQ(read.conversation.back().text, "A");
  EXPECT_EQ(read_journal(file + "{\"leaf\":2}\n", last_id).conversation.back().text, "B");
}

TEST(ChatStore, WithoutAWholeLastChatThereIsANewOne) {
  const TempFolder folder;
  Window window(folder.path());
  window.ask("Older", "Yes");
  const std::string older = window.view.messages.id;
  window.run(PinChat{true});
  window.run(NewChat{});
  window.ask("Newer", "Yes");
  const std::string newer = window.view.messages.id;
  window.run(NewChat{});
  EXPECT_EQ(files_in(folder.path()), 2u) << "an empty chat has no file";
  {
    Window later(folder.path());
    later.desk.reopen(later.view, "20201122-000000-abcdef");
    EXPECT_TRUE(later.view.messages.empty());
    EXPECT_TRUE(later.view.cards.empty());
    later.desk.reopen(later.view, "");
    EXPECT_EQ(later.view.messages.id, newer) << "the newest where none was remembered";
  }
  const std::string bytes = "garbage\n";
  std::ofstream(folder.path() / (older + ".jsonl"), std::ios::binary) << bytes;
  Window later(folder.path());
  later.desk.reopen(later.view, older);
  EXPECT_TRUE(later.view.messages.empty());
  EXPECT_TRUE(later.view.cards.empty());
  EXPECT_EQ(read_small_file(folder.path() / (older + ".jsonl"), 1 << 20), bytes) << "it stays as it is";
}

TEST(ChatStore, AWindowSeesWhatAnotherOneDoes) {
  const TempFolder folder;
  std::string id;
  {
    Window writer(folder.path());
    writer.ask("Shared", "One");
    id = writer.view.messages.id;
  }
  Window first(folder.path());
  first.run(OpenChat{id});
  Window second(folder.path());
  second.ask("Of the second", "Two");
  EXPECT_TRUE(first.desk.look(first.view));
  ASSERT_EQ(first.view.chat.listings.size(), 2u);
  EXPECT_EQ(std::ranges::count(first.view.chat.listings, "Of the second", &ChatListing::title), 1);
  second.run(RenameChat{"Renamed there", id});
  second.run(PinChat{true, id});
  EXPECT_TRUE(first.desk.look(first.view));
  EXPECT_EQ(first.view.chat.listings[0].title, "Renamed there");
  EXPECT_EQ(first.view.messages.title, "Renamed there");
  EXPECT_TRUE(first.view.messages.pinned);
  EXPECT_FALSE(first.desk.look(first.view)) << "nothing changed since";
  first.ask("Goes on here", "Three");
  EXPECT_EQ(first.view.messages.id, id) << "a name is no reason for a copy";
  second.run(RenameChat{"Too late", id});
  ASSERT_FALSE(second.view.cards.empty());
  EXPECT_NE(second.view.cards.back().detail.find("another window"), std::string::npos);
}

TEST(ChatStore, AChatThatAnotherWindowDeletedStaysOnShowAndIsKeptWhenItGoesOn) {
  const TempFolder folder;
  std::string id;
  {
    Window writer(folder.path());
    writer.ask("Shared", "One");
    id = writer.view.messages.id;
  }
  Window first(folder.path());
  first.run(OpenChat{id});
  Window second(folder.path());
  second.run(DeleteChat{id});
  EXPECT_TRUE(first.desk.look(first.view));
  EXPECT_TRUE(first.view.chat.listings.empty());
  EXPECT_NE(first.view.chat.note.find("deleted"), std::string::npos);
  EXPECT_EQ(first.view.messages.back().text, "One");
  EXPECT_EQ(files_in(folder.path()), 0u) << "it is not brought back by being looked at";
  first.ask("Still here?", "Two");
  EXPECT_TRUE(first.view.cards.empty());
  EXPECT_NE(first.view.messages.id, id);
  Window later(folder.path());
  later.run(OpenChat{first.view.messages.id});
  EXPECT_EQ(later.view.messages.size(), 4u);
  second.run(UndoDelete{});
  EXPECT_EQ(files_in(folder.path()), 2u);
}

TEST(ChatStore, LookingAtBranchesOfAnotherWindowsChatMakesNoCopy) {
  const TempFolder folder;
  Window first(folder.path());
  first.ask("Shared", "One");
  first.run(AnswerAgain{first.view.messages.back().id});
  finish(first, "Two");
  Window second(folder.path());
  second.run(OpenChat{first.view.messages.id});
  second.run(ShowAlternative{second.view.messages.back().id, -1});
  EXPECT_EQ(second.view.messages.back().text, "One");
  second.run(RenameChat{"Mine"});
  EXPECT_NE(second.view.chat.note.find("another window"), std::string::npos);
  EXPECT_EQ(second.view.messages.title, "");
  EXPECT_EQ(files_in(folder.path()), 1u);
}

TEST(ChatStore, AFolderThatCannotBeMadeWarnsOnceAndTheChatGoesOn) {  // gui.md, criterion 26: read-only home
  const TempFolder folder;
  const fs::path file = folder.write("file", "x");
  Window window(file / "chats");
  ASSERT_EQ(window.view.cards.size(), 1u);
  EXPECT_TRUE(window.view.cards[0].warning);
  EXPECT_NE(window.view.cards[0].detail.find("export"), std::string::npos);
  window.ask("Still here?", "Yes");
  window.ask("Really?", "Yes");
  EXPECT_EQ(window.view.cards.size(), 1u);
  EXPECT_EQ(window.view.messages.size(), 4u);
  EXPECT_FALSE(window.view.chat.kept);
}

TEST(ChatStore, AFullDiskIsToldOnceAndMadeUpForLater) {
  const TempFolder folder;
  Window window(folder.path());
  window.ask("Before", "Saved");
  {
    const FullDisk full;
    window.ask("Meanwhile", "Not yet");
    window.ask("Again", "Not yet either");
    EXPECT_EQ(window.view.cards.size(), 1u);
  }
  window.ask("After", "Saved again");
  Window later(folder.path());
  later.run(OpenChat{window.view.messages.id});
  EXPECT_TRUE(later.view.cards.empty());
  ASSERT_EQ(later.view.messages.size(), 8u);
  EXPECT_EQ(later.view.messages[3].text, "Not yet");
}

TEST(ChatStore, ExportsAndImportsThroughFiles) {
  const TempFolder folder;
  Window window(folder.path() / "chats");
  window.ask("Out", "And in");
  const std::string exported = json_of(window.view.messages), path = (folder.path() / "chat.json").string();
  window.run(ExportChat{path, ExportFormat::json});
  EXPECT_EQ(read_small_file(path, 1 << 20), exported);
  EXPECT_NE(window.view.chat.note.find("chat.json"), std::string::npos);
  window.run(NewChat{});
  window.run(ImportChat{path});
  EXPECT_EQ(json_of(window.view.messages), exported);
  window.run(ImportChat{(folder.path() / "none.json").string()});
  EXPECT_EQ(window.view.cards.size(), 1u);
  EXPECT_EQ(window.view.messages.size(), 2u) << "a failed import changes nothing";
  window.run(ExportChat{"/proc/nowhere/chat.md", ExportFormat::markdown});
  EXPECT_EQ(window.view.cards.back().title, "The chat cannot be exported");
}

}  // namespace
}  // namespace canopy::app
