// Replies in channels, those of the harmony format and of Gemma 4, token by token.

#include "engine/text/chat_turn.h"

#include <gtest/gtest.h>

#include <initializer_list>

namespace canopy {
namespace {

/// A reply written so far.
struct Written {
  std::string text;
  ThoughtPart thought;
  std::vector<ToolCall> calls;

  std::string answer() const { return text.substr(thought.bytes); }
};

using Tokens = std::vector<std::string>;

/// Pieces like "<|end|>" and "<channel|>" are control tokens, the others text. A piece that begins with "text:" is text
/// in any case.
ReplyChannels::Piece piece_of(const std::string& token) {
  if (token.starts_with("text:")) return {std::string_view(token).substr(5), false};
  return {token, token.starts_with("<|") || token == "<channel|>" || token == "<tool_call|>"};
}

/// Calls each with what is there after each token.
template <class Each>
Written write(const Tokens& prompt, const Tokens& reply, const Each& each) {
  ReplyChannels channels;
  std::vector<uint32_t> ids;
  for (uint32_t i = 0; i < prompt.size(); ++i) ids.push_back(i);
  channels.begin(ids, [&](uint32_t id) { return piece_of(prompt[id]); });
  Written written;
  for (const std::string& token : reply) {
    const ReplyChannels::Piece piece = piece_of(token);
    ReplyChannels::Shown shown;
    if (piece.control) {
      channels.control(piece.bytes, shown);
    } else {
      shown = channels.text(piece.bytes);
    }
    written.text += shown.lead + shown.text;
    written.thought = channels.thought();
    written.calls = channels.calls();
    each(written);
  }
  return written;
}

Written write(const Tokens& prompt, const Tokens& reply) {
  return write(prompt, reply, [](const Written&) {});
}

const Tokens start = {"<|start|>", "user", "<|message|>", "hi", "<|end|>", "<|start|>", "assistant"};

TEST(ReplyChannels, TheAnswerIsFinalAndAnalysisIsThought) {
  const Tokens reply = {"<|channel|>", "analysis",    "<|message|>", "Two ",        "and two.",
                        "<|end|>",     "<|start|>",   "assistant",   "<|channel|>", "fin",
                        "al",          "<|message|>", "Four",        ".",           "<|return|>"};
  const Written whole = write(start, reply, [](const Written& now) {
    EXPECT_EQ(now.text, std::string("Two and two.\n\nFour.").substr(0, now.text.size())) << "markup is never shown";
    EXPECT_EQ(now.thought.open, now.text.size() <= 14) << now.text;
    EXPECT_EQ(now.thought.bytes, std::min<size_t>(now.text.size(), 14));
  });
  EXPECT_EQ(whole.text, "Two and two.\n\nFour.");
  EXPECT_EQ(whole.answer(), "Four.");
  EXPECT_TRUE(whole.thought.told_apart);
}

TEST(ReplyChannels, APromptMayEndInTheHeadOrBehindIt) {
  Tokens head = start;
  head.push_back("<|channel|>");
  EXPECT_EQ(write(head, {"analysis", "<|message|>", "Hm.", "<|end|>", "<|start|>", "assistant", "<|channel|>", "final",
                         "<|message|>", "Four."})
                .answer(),
            "Four.");
  head.insert(head.end(), {"final", "<|message|>"});
  const Written answer = write(head, {"Four."});
  EXPECT_EQ(answer.text, "Four.");
  EXPECT_FALSE(answer.thought.open);
  head[head.size() - 2] = "analysis";
  const Written thought = write(head, {"Hm."});
  EXPECT_EQ(thought.answer(), "");
  EXPECT_TRUE(thought.thought.open);
}

TEST(ReplyChannels, AReplyThatIsCutHasNoAnswerYet) {
  const Written cut = write(start, {"<|channel|>", "analysis", "<|message|>", "Two and"});
  EXPECT_EQ(cut.text, "Two and");
  EXPECT_TRUE(cut.thought.open);
  EXPECT_EQ(cut.answer(), "");
  EXPECT_EQ(write(start, {"<|channel|>", "anal"}).text, "") << "half a head";
}

TEST(ReplyChannels, CommentaryAndCallsOfToolsAreNotTheAnswer) {
  const Tokens call = {"<|channel|>",   "commentary", " to=functions.get_weather ",
                       "<|constrain|>", "json",       "<|message|>",
                       "{\"city\":",    "\"Oslo\"}",  "<|call|>"};
  Tokens reply = {"<|channel|>", "commentary", "<|message|>", "I look.", "<|end|>", "<|start|>", "assistant"};
  reply.insert(reply.end(), call.begin(), call.end());
  const Written written = write(start, reply);
  EXPECT_EQ(written.text, "I look.\n\nget_weather: {\"city\":\"Oslo\"}");
  EXPECT_EQ(written.answer(), "");
  ASSERT_EQ(written.calls.size(), 1u);
  EXPECT_EQ(written.calls[0].name, "get_weather");
  EXPECT_EQ(written.calls[0].arguments, "{\"city\":\"Oslo\"}");
  const Written role = write(start, {" to=functions.f", "<|channel|>", "commentary json", "<|message|>", "{}"});
  ASSERT_EQ(role.calls.size(), 1u) << "the recipient may stand behind the role";
  EXPECT_EQ(role.calls[0].name, "f");
}

TEST(ReplyChannels, AnAnswerMayHaveNoHead) {
  EXPECT_EQ(
      write(start, {"<|channel|>", "analysis", "<|message|>", "Hm.", "<|end|>", "<|start|>", "Four.", "<|return|>"})
          .answer(),
      "Four.");
  EXPECT_EQ(write(start, {"<|message|>", "Four.", "<|return|>"}).text, "Four.");
  EXPECT_EQ(write(start, {"<|return|>"}).text, "") << "the role alone is none";
  EXPECT_EQ(write({"raw text"}, {"Four."}).text, "Four.");
}

TEST(ReplyChannels, MarkupInTheLettersOfATextIsText) {
  const Written written = write(
      start, {"<|channel|>", "final", "<|message|>", "text:<|channel|>", "analysis", "text:<|message|>", "<think>x"});
  EXPECT_EQ(written.text, "<|channel|>analysis<|message|><think>x");
  EXPECT_EQ(written.answer(), written.text);
}

TEST(ReplyChannels, WhatIsThoughtBehindTheAnswerIsLeftOut) {
  const Written written = write(start, {"<|channel|>", "final", "<|message|>", "Four.", "<|end|>", "<|start|>",
                                        "assistant", "<|channel|>", "analysis", "<|message|>", "Hm.", "<|end|>",
                                        "<|start|>", "assistant", "<|channel|>", "final", "<|message|>", "Yes."});
  EXPECT_EQ(written.text, "Four.\n\nYes.");
  EXPECT_EQ(written.answer(), written.text);
}

const Tokens gemma_start = {"<|turn>", "user", "\n", "hi", "<turn|>", "\n", "<|turn>", "model", "\n"};

TEST(ReplyChannels, GemmaThinksInAChannelWhoseHeadIsALine) {
  const Tokens reply = {"<|channel>", "thou", "ght", "\nTwo ", "and two.", "\n", "<channel|>", "Four", "."};
  const Written whole = write(gemma_start, reply, [](const Written& now) {
    EXPECT_EQ(now.text, std::string("Two and two.\n\n\nFour.").substr(0, now.text.size())) << "markup is never shown";
    EXPECT_EQ(now.thought.open, now.text.size() <= 15) << now.text;
  });
  EXPECT_EQ(whole.text, "Two and two.\n\n\nFour.");
  EXPECT_EQ(whole.answer(), "Four.");
  EXPECT_TRUE(whole.thought.told_apart);
}

TEST(ReplyChannels, GemmaMayThinkNothingOrNotAtAll) {
  const Written none = write(gemma_start, {"<|channel>", "thought", "\n", "<channel|>", "Four."});
  EXPECT_EQ(none.text, "Four.");
  EXPECT_EQ(none.thought, (ThoughtPart{true, false, 0}));
  const Written plain = write(gemma_start, {"Four:", "\n", "4"});
  EXPECT_EQ(plain.text, "Four:\n4");
  EXPECT_EQ(plain.thought, (ThoughtPart{true, false, 0}));
}

TEST(ReplyChannels, APromptOfGemmaMayEndInTheChannelOrBehindIt) {
  Tokens prompt = gemma_start;
  prompt.insert(prompt.end(), {"<|channel>", "thought", "\n"});
  const Written thinks = write(prompt, {"Hm.", "<channel|>", "Four."});
  EXPECT_EQ(thinks.text, "Hm.\n\nFour.");
  EXPECT_EQ(thinks.answer(), "Four.");
  prompt.push_back("<channel|>");
  const Written answers = write(prompt, {"Four."});
  EXPECT_EQ(answers.text, "Four.");
  EXPECT_FALSE(answers.thought.open);
  // What an earlier turn thought is no part of this one.
  prompt.insert(prompt.end(), {"Four.", "<turn|>", "\n", "<|turn>", "model", "\n"});
  EXPECT_EQ(write(prompt, {"Five."}).answer(), "Five.");
}

TEST(ReplyChannels, CallsOfGemmaArePartOfTheAnswerAsTheyAreSpelled) {
  const Tokens call = {"<|tool_call>", "call:", "f", "{x:", "<|\"|>", "a", "<|\"|>", "}", "<tool_call|>"};
  const std::string spelled = "<|tool_call>call:f{x:<|\"|>a<|\"|>}<tool_call|>";
  EXPECT_EQ(write(gemma_start, call).text, spelled);
  EXPECT_EQ(write(gemma_start, call).answer(), spelled);
  Tokens thought = {"<|channel>", "thought", "\n", "Hm.", "<channel|>"};
  Tokens unclosed(thought.begin(), thought.end() - 1);
  for (Tokens* reply : {&thought, &unclosed}) {
    reply->insert(reply->end(), call.begin(), call.end());
    const Written written = write(gemma_start, *reply);
    EXPECT_EQ(written.text, "Hm.\n\n" + spelled);
    EXPECT_EQ(written.answer(), spelled) << "a call ends the thinking";
    EXPECT_TRUE(written.calls.empty()) << "they are read in the text";
  }
  // A prompt that ends in a call, and one in which an earlier one stands.
  Tokens prompt = gemma_start;
  prompt.insert(prompt.end(), {"<|channel>", "thought", "\n", "<channel|>", "<|tool_call>", "call:"});
  const Written rest = write(prompt, {"f", "{}", "<tool_call|>"});
  EXPECT_EQ(rest.answer(), "f{}<tool_call|>");
  prompt.insert(prompt.end(), {"f{}", "<tool_call|>", "<|tool_response>", "response:f{}"});
  EXPECT_EQ(write(prompt, {"Four."}).answer(), "Four.");
}

TEST(ReplyChannels, SpellingsOfGemmasMarksInATextAreText) {
  const Written written = write(gemma_start, {"<|channel>", "thought", "\n", "a text:", "text:<channel|>", "b"});
  EXPECT_EQ(written.text, "a text:<channel|>b");
  EXPECT_TRUE(written.thought.open);
  EXPECT_EQ(written.answer(), "");
}

}  // namespace
}  // namespace canopy
