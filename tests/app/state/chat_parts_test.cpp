// What a message is made of beside its words: thinking, attached files; and system prompts that are kept under names.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "app/state/chat.h"
#include "app/state/chat_journal.h"
#include "app/state/conversation.h"
#include "engine/base/error.h"
#include "tests/app/support/chat_window.h"
#include "tests/base/temp_folder.h"

namespace canopy::app {
namespace {

using test::TempFolder;

Message reply_of(std::string text, bool writing = false) {
  Message message;
  message.role = Role::assistant;
  message.text = std::move(text);
  message.writing = writing;
  return message;
}

std::string thought_in(const Message& message) {
  const Thinking thinking = thinking_of(message);
  return message.text.substr(thinking.begin, thinking.end - thinking.begin);
}

/// Calls f and returns the sentence of the Error that it throws.
template <class F>
std::string refusal(const F& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "nothing was thrown";
}

void write(const std::filesystem::path& path, std::string_view text) {
  std::ofstream(path, std::ios::binary) << text;
}

TEST(Thinking, IsWhatStandsInItsTagsBeforeTheAnswer) {
  const Message message = reply_of("<think>\nTwo and two.\n</think>\n\nFour.");
  EXPECT_TRUE(thinking_of(message).there);
  EXPECT_FALSE(thinking_of(message).open);
  EXPECT_EQ(thought_in(message), "Two and two.");
  EXPECT_EQ(answer_of(message), "Four.");
}

TEST(Thinking, IsOpenUntilItsEndHasCome) {
  const std::string whole = "<think>\nHm.\n</think>\n\nFour.";
  for (size_t length = 1; length <= whole.size(); ++length) {
    const Message message = reply_of(whole.substr(0, length), true);
    const Thinking thinking = thinking_of(message);
    EXPECT_TRUE(thinking.there) << length;
    EXPECT_EQ(thinking.open, length < whole.find("</think>") + 8) << length;
    EXPECT_LE(thinking.begin, thinking.end);
    EXPECT_LE(thinking.end, thinking.answer);
    EXPECT_LE(thinking.answer, length);
  }
}

TEST(Thinking, BeginsAtTheFirstByteWhereThePromptOpenedIt) {
  Message message = reply_of("Hm.\n</think>\n\nFour.");
  EXPECT_FALSE(thinking_of(message).there) << "without that it is text like any other";
  EXPECT_EQ(answer_of(message), message.text);
  message.begins_thinking = true;
  EXPECT_EQ(thought_in(message), "Hm.");
  EXPECT_EQ(answer_of(message), "Four.");
}

TEST(Thinking, OfNothingIsNotShown) {
  const Message message = reply_of("<think>\n\n</think>\n\nFour.");
  EXPECT_FALSE(thinking_of(message).there);
  EXPECT_EQ(answer_of(message), "Four.");
  EXPECT_EQ(answer_of(reply_of("Write <think> and </think>.")), "Write <think> and </think>.");
  Message question = reply_of("<think>a</think>b");
  question.role = Role::user;
  EXPECT_FALSE(thinking_of(question).there);
}

TEST(Thinking, OfAReplyInChannelsIsWhatCameInThem) {
  Message message = reply_of("Two and two.\n\n<think>Four.</think>");
  message.thought = {true, false, 14};
  EXPECT_EQ(thought_of(message), "Two and two.");
  EXPECT_EQ(answer_of(message), "<think>Four.</think>") << "tags in such an answer are its text";
  message.thought.open = true;
  message.text.resize(14);
  EXPECT_TRUE(thinking_of(message).open);
  EXPECT_EQ(answer_of(message), "");
  Message plain = reply_of("<think>Four.");
  plain.thought = {true, false, 0};
  EXPECT_FALSE(thinking_of(plain).there);
  EXPECT_EQ(answer_of(plain), plain.text);
  Message markup = reply_of("<|channel|>analysis<|message|>Hm.<|end|>");
  EXPECT_EQ(answer_of(markup), markup.text) << "in another model's reply it is text";
}

TEST(Thinking, OfChannelsIsKeptInFilesAndFoldedInMarkdown) {
  Conversation chat;
  chat.append({});
  Message reply = reply_of("Hm.\n\nFour.");
  reply.thought = {true, false, 5};
  chat.append(reply);
  EXPECT_NE(markdown_of(chat).find("<details><summary>Thought</summary>\n\nHm.\n\n</details>\n\nFour."),
            std::string::npos);
  uint64_t id = 0;
  EXPECT_EQ(conversation_from(json_of(chat), id).back().thought, reply.thought);
  const std::string lost = R"("thought":{"bytes":99,"open":false})";
  std::string damaged = json_of(chat);
  const size_t at = damaged.find("\"thought\"");
  ASSERT_NE(at, std::string::npos);
  damaged.replace(at, damaged.find('}', at) + 1 - at, lost);
  EXPECT_NE(refusal([&] { conversation_from(damaged, id); }).find("ends at byte 99 of 10"), std::string::npos);
}

TEST(Thinking, OfChannelsIsKeptInTheJournalWhileItIsWritten) {
  Conversation chat;
  chat.append({});
  JournalMark mark;
  Message reply = reply_of("", true);
  chat.append(reply);
  std::string lines = journal_lines(chat, mark);
  chat.back().text = "Hm.";
  chat.back().thought = {true, true, 3};
  lines += journal_lines(chat, mark);
  uint64_t id = 0;
  EXPECT_EQ(read_journal(lines, id).conversation.back().thought, (ThoughtPart{true, true, 3}));
  chat.back().text = "Hm.\n\nFour.";
  chat.back().thought = {true, false, 5};
  chat.back().writing = false;
  lines += journal_lines(chat, mark);
  EXPECT_EQ(answer_of(read_journal(lines, id).conversation.back()), "Four.");
}

TEST(Thinking, SaysHowManyTokensItTook) {
  Message message = reply_of("<think>ab</think>c");
  for (const uint32_t end : {7u, 8u, 9u, 17u, 18u}) {
    const uint32_t begin = message.spans.empty() ? 0 : message.spans.back().end;
    message.spans.push_back({begin, end, 0, 0, TokenSource::own});
  }
  message.tokens = 5;
  EXPECT_EQ(thinking_words(message, thinking_of(message)), "Thought for 3 tokens");
  message.text.resize(9);
  EXPECT_EQ(thinking_words(message, thinking_of(message)), "Thought for 5 tokens, and came to no answer");
  message.writing = true;
  EXPECT_EQ(thinking_words(message, thinking_of(message)), "Thinking, 5 tokens");
  EXPECT_EQ(thinking_words(reply_of("<think>a</think>b"), thinking_of(reply_of("<think>a</think>b"))), "Thought");
}

TEST(Thinking, IsFoldedInExportedMarkdownAndWholeInTheFile) {
  Conversation chat;
  chat.append({});
  Message reply = reply_of("<think>\nHm.\n</think>\n\nFour.");
  reply.begins_thinking = true;
  reply.parameters.thinking = true;
  chat.append(reply);
  const std::string markdown = markdown_of(chat);
  EXPECT_NE(markdown.find("<details><summary>Thought</summary>\n\nHm.\n\n</details>\n\nFour."), std::string::npos);
  EXPECT_EQ(markdown.find("<think>"), std::string::npos);
  uint64_t id = 0;
  const Conversation back = conversation_from(json_of(chat), id);
  EXPECT_EQ(back.back().text, reply.text);
  EXPECT_TRUE(back.back().begins_thinking);
  EXPECT_EQ(back.back().parameters.thinking, true);
}

TEST(AttachedText, IsSentInABlockThatNothingInsideCanClose) {
  Message question;
  question.text = "What does it do?";
  question.attachments.push_back({"a.md", "```\ncode\n```", 0, 0});
  EXPECT_EQ(question_with_files(question), "a.md:\n````\n```\ncode\n```\n````\n\nWhat does it do?");
  question.attachments = {{"b.txt", "one\n", 0, 0}};
  EXPECT_EQ(question_with_files(question), "b.txt:\n```\none\n```\n\nWhat does it do?");
}

TEST(AttachedText, ReadsTextAndSaysWhyItDoesNot) {
  const TempFolder folder;
  const auto path = [&](const char* name) { return (folder.path() / name).string(); };
  write(path("main.cpp"), "\xEF\xBB\xBFint main() {}\n");
  EXPECT_EQ(read_attachment(path("main.cpp")).text, "int main() {}\n");
  EXPECT_EQ(read_attachment(path("main.cpp")).name, "main.cpp");
  EXPECT_NE(refusal([&] { read_attachment(path("gone.txt")); }).find("\"gone.txt\" is not there"), std::string::npos);
  EXPECT_NE(refusal([&] { read_attachment(folder.path().string()); }).find("is a folder"), std::string::npos);
  write(path("empty"), "");
  EXPECT_NE(refusal([&] { read_attachment(path("empty")); }).find("\"empty\" is empty"), std::string::npos);
  write(path("binary"), std::string_view("ab\0c", 4));
  EXPECT_NE(refusal([&] { read_attachment(path("binary")); }).find("byte 2 is 0"), std::string::npos);
  EXPECT_FALSE(looks_like_text(path("binary")));
  EXPECT_TRUE(looks_like_text(path("main.cpp")));
  write(path("latin"), "na\xEFve");
  EXPECT_NE(refusal([&] { read_attachment(path("latin")); }).find("not in UTF-8"), std::string::npos);
  write(path("wide"), std::string_view("\xFF\xFEz\0w\0e\0i\0 \0\xFC\0", 14));
  EXPECT_TRUE(looks_like_text(path("wide")));
  EXPECT_EQ(read_attachment(path("wide")).text, "zwei \u00FC");
  write(path("unmarked"), std::string_view("z\0w\0e\0i\0 \0\xFC\0\n\0", 14));
  EXPECT_TRUE(looks_like_text(path("unmarked"))) << "so that it is told why, not taken for a model";
  EXPECT_NE(refusal([&] { read_attachment(path("unmarked")); }).find("UTF-16"), std::string::npos);
  write(path("mark alone"), "\xEF\xBB\xBF");
  EXPECT_NE(refusal([&] { read_attachment(path("mark alone")); }).find("is empty"), std::string::npos);
  write(path("large"), std::string(kLargestAttachment + 1, 'x'));
  EXPECT_NE(refusal([&] { read_attachment(path("large")); }).find("1.0 MB, and a text file may have 1 MB"),
            std::string::npos);
}

TEST(AttachedText, OfSeveralFilesAllAreAttachedOrThoseLeftOutAreNamed) {
  const TempFolder folder;
  test::ChatWindow window(folder.path() / "chats");
  std::vector<std::string> paths;
  for (const char* name : {"one.txt", "zwei ü.txt", "three.txt"}) paths.push_back(folder.write(name, name).string());
  window.desk.attach(window.view, paths);
  ASSERT_EQ(window.view.chat.attachments.size(), 3u);
  EXPECT_EQ(window.view.chat.attachments[1].name, "zwei ü.txt");
  EXPECT_EQ(window.view.chat.attach_problem, "");
  const auto said = [&](const char* words) { return window.view.chat.attach_problem.find(words) != std::string::npos; };
  window.desk.attach(window.view, {paths[1], folder.write("empty", "").string(), folder.path().string()});
  EXPECT_EQ(window.view.chat.attachments.size(), 3u);
  EXPECT_TRUE(said("\"zwei ü.txt\" is attached already") && said("\"empty\" is empty") && said("is a folder"))
      << window.view.chat.attach_problem;
  for (char c = 'a'; c <= 'g'; ++c) paths.push_back(folder.write(std::string(1, c), std::string(1, c)).string());
  paths.erase(paths.begin(), paths.begin() + 3);
  window.desk.attach(window.view, paths);
  EXPECT_EQ(window.view.chat.attachments.size(), kMostAttachments);
  EXPECT_TRUE(said("can have 8 files; left out: \"f\" and \"g\"")) << window.view.chat.attach_problem;
}

TEST(AttachedText, StaysWithTheChat) {
  Conversation chat;
  Message question;
  question.text = "Why?";
  question.attachments.push_back({"b.txt", "one\n", 3, 77});
  chat.append(question);
  chat.append(reply_of("So."));
  chat.left_out = 2;
  JournalMark mark;
  std::string lines = journal_lines(chat, mark);
  chat.left_out = 0;
  lines += journal_lines(chat, mark);
  uint64_t id = 0;
  const JournalRead back = read_journal(lines, id);
  EXPECT_EQ(back.problem, "");
  ASSERT_EQ(back.conversation.front().attachments.size(), 1u);
  const Attachment& file = back.conversation.front().attachments[0];
  EXPECT_EQ(file.name + "|" + file.text, "b.txt|one\n");
  EXPECT_EQ(file.tokens, 3u);
  EXPECT_EQ(file.vocabulary, 77u);
  EXPECT_EQ(back.conversation.left_out, 0u);
  EXPECT_NE(markdown_of(chat).find("b.txt:\n```\none\n```\n\nWhy?"), std::string::npos);
}

TEST(Journal, AKilledReplyHasAsManyTokensAsItsFileTells) {
  Conversation chat;
  chat.append({});
  Message reply = reply_of("one two", true);
  reply.spans = {{0, 3, 0, 0, TokenSource::own}, {3, 7, 0, 1, TokenSource::own}};
  chat.append(reply);
  JournalMark mark;
  uint64_t id = 0;
  const JournalRead back = read_journal(journal_lines(chat, mark), id);
  EXPECT_EQ(back.conversation.back().tokens, 2u);
  EXPECT_EQ(back.conversation.back().result->reply_tokens, 2u);
}

TEST(UnsentTurns, BeginWithAQuestionAndLeaveTheLastOne) {
  Conversation chat;
  for (const char* text : {"a", "b", "c", "d"}) {
    Message message;
    message.role = chat.size() % 2 == 0 ? Role::user : Role::assistant;
    message.text = text;
    chat.append(message);
  }
  for (const auto& [left_out, unsent] : {std::pair{0u, 0u}, {1u, 0u}, {2u, 2u}, {3u, 2u}, {4u, 2u}, {9u, 2u}}) {
    chat.left_out = left_out;
    EXPECT_EQ(chat.unsent(), unsent) << left_out;
  }
}

TEST(NamedPrompts, AreKeptByNameAndWithinBounds) {
  std::vector<NamedPrompt> prompts;
  save_prompt(prompts, " Tutor ", "Explain.");
  save_prompt(prompts, "Brief", "Be short.");
  save_prompt(prompts, "Tutor", "Explain slowly.");
  ASSERT_EQ(prompts.size(), 2u);
  EXPECT_EQ(prompts[0].name, "Brief");
  EXPECT_EQ(name_of_prompt(prompts, "Explain slowly."), "Tutor");
  rename_prompt(prompts, "Tutor", "A teacher");
  EXPECT_EQ(prompts[0].name, "A teacher");
  EXPECT_NE(refusal([&] { rename_prompt(prompts, "Brief", "A teacher"); }).find("already"), std::string::npos);
  EXPECT_NE(refusal([&] { save_prompt(prompts, " ", "x"); }).find("needs a name"), std::string::npos);
  EXPECT_NE(refusal([&] { save_prompt(prompts, "x", " "); }).find("no text"), std::string::npos);
  EXPECT_NE(refusal([&] { save_prompt(prompts, std::string(61, 'n'), "x"); }).find("at most 60"), std::string::npos);
  EXPECT_NE(refusal([&] { save_prompt(prompts, "x", std::string(16385, 't')); }).find("16384"), std::string::npos);
  delete_prompt(prompts, "A teacher");
  delete_prompt(prompts, "A teacher");
  EXPECT_EQ(prompts.size(), 1u);
  while (prompts.size() < kMostPrompts) save_prompt(prompts, "n" + std::to_string(prompts.size()), "t");
  EXPECT_NE(refusal([&] { save_prompt(prompts, "one more", "t"); }).find("100"), std::string::npos);
}

TEST(NamedPrompts, AreReadBackAndBadFilesAreNamed) {
  const TempFolder folder;
  const std::string path = (folder.path() / "prompts.json").string();
  EXPECT_TRUE(read_prompts(path).empty());
  const std::vector<NamedPrompt> prompts = {{"Brief", "Be \"short\"\n\u00fc."}, {"Tutor", "Explain."}};
  write_prompts(path, prompts);
  EXPECT_EQ(read_prompts(path), prompts);
  write(path, R"({"prompts": [{"name": "a"}]})");
  EXPECT_NE(refusal([&] { read_prompts(path); }).find("prompts.json"), std::string::npos);
  write(path, R"({"version": 9, "prompts": []})");
  EXPECT_NE(refusal([&] { read_prompts(path); }).find("newer Canopy"), std::string::npos);
}

// In all boxes for paths.
TEST(TypedPath, BeginsInTheHomeFolderWhereItIsWrittenSo) {
  const char* before = std::getenv("HOME");
  const std::string kept = before ? before : "";
  setenv("HOME", "/nowhere/somebody", 1);
  EXPECT_EQ(typed_path("~"), "/nowhere/somebody");
  EXPECT_EQ(typed_path("~/notes.txt"), "/nowhere/somebody/notes.txt");
  EXPECT_EQ(typed_path("~other/notes.txt"), "~other/notes.txt");
  EXPECT_EQ(typed_path("/a/~/b"), "/a/~/b");
  EXPECT_EQ(typed_path(""), "");
  before ? setenv("HOME", kept.c_str(), 1) : unsetenv("HOME");
}

}  // namespace
}  // namespace canopy::app
