#include "engine/session/reply.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "engine/format/model_file.h"
#include "engine/text/vocabulary.h"
#include "tests/base/expect_error.h"
#include "tests/model/golden_data.h"

namespace canopy::test {
namespace {

class ReplyTextTest : public ::testing::Test {
 protected:
  static TextModel tiny() { return make_text_model(ModelFile::open(golden_folder() / "tiny-qwen3")); }
  TextModel text_ = tiny();

  std::string streamed(std::string_view text, std::vector<std::string> stops = {}) {
    ReplyText reply(*text_.tokenizer, std::move(stops));
    std::string shown;
    for (const uint32_t id : text_.tokenizer->encode(text, SpecialTokens::as_text)) shown += reply.push(id);
    shown += reply.finish();
    EXPECT_EQ(shown, reply.text());
    return shown;
  }
};

TEST_F(ReplyTextTest, CharactersThatSpanTokensComeOutWhole) {
  const std::string text = "caf\xc3\xa9 \xe6\xbc\xa2\xe5\xad\x97 \xf0\x9f\x8c\xb3 end";
  EXPECT_EQ(streamed(text), text);
  ReplyText reply(*text_.tokenizer, {});
  for (const uint32_t id : text_.tokenizer->encode(text, SpecialTokens::as_text)) {
    EXPECT_EQ(reply.push(id).find("\xef\xbf\xbd"), std::string::npos);
  }
}

TEST_F(ReplyTextTest, StopStringsAreCutOutEvenAcrossTokens) {
  EXPECT_EQ(streamed("one two three four", {"two thr"}), "one ");
  EXPECT_EQ(streamed("one two three four", {"two thx"}), "one two three four");
}

TEST_F(ReplyTextTest, ControlTokensHaveNoText) {
  ReplyText reply(*text_.tokenizer, {});
  EXPECT_EQ(reply.push(text_.stop_ids.front()), "");
  EXPECT_EQ(reply.finish(), "");
}

// Vocabularies like Llama 2's spell a word with the space before it; the first word of a reply is shown without it.
TEST(ReplyTextStart, TheSpaceOfTheVocabularyIsNotShownAtTheStart) {
  const std::vector<std::string> tokens = {"<unk>", "<s>", "</s>",
                                           "\xE2\x96\x81"
                                           "a",
                                           "b"};
  VocabularyData data;
  data.model = "llama";
  data.types = {2, 3, 3, 1, 1};
  data.scores = {0, 0, 0, -1, -2};
  data.tokens.assign(tokens.begin(), tokens.end());
  const auto tokenizer = Tokenizer::from_vocabulary(data);
  ReplyText reply(*tokenizer, {});
  std::string shown = reply.push(3);
  shown += reply.push(4);
  shown += reply.push(3);
  EXPECT_EQ(shown + reply.finish(), "ab a");
}

// A vocabulary of bytes and of the control tokens of harmony.
class ReplyInChannels : public ::testing::Test {
 protected:
  ReplyInChannels() {
    for (int byte = 0; byte < 256; ++byte) {
      tokens_.emplace_back(byte_level_character(static_cast<unsigned char>(byte)));
    }
    data_.types.assign(256, static_cast<int32_t>(TokenType::normal));
    tokens_.emplace_back("ab");
    data_.types.push_back(static_cast<int32_t>(TokenType::normal));
    for (const char* name : {"<|start|>", "<|channel|>", "<|message|>", "<|end|>", "<|return|>", "<|call|>"}) {
      tokens_.emplace_back(name);
      data_.types.push_back(static_cast<int32_t>(TokenType::user_defined));
    }
    data_.model = "gpt2";
    data_.pre_tokenizer = "gpt-2";
    data_.merges = {"a b"};
    data_.tokens.assign(tokens_.begin(), tokens_.end());
    tokenizer_ = Tokenizer::from_vocabulary(data_);
  }

  std::vector<uint32_t> ids_of(std::string_view text) const { return tokenizer_->encode(text, SpecialTokens::parse); }

  ReplyText reply(std::string_view text, std::vector<std::string> stops = {}) const {
    ReplyText reply(*tokenizer_, std::move(stops), ids_of("<|start|>assistant"));
    std::string shown;
    for (const uint32_t id : ids_of(text)) {
      const bool ends = std::ranges::binary_search(tokenizer_->end_ids(), id);
      shown += ends ? reply.push_end(id) : reply.push(id);
      EXPECT_EQ(shown.find("<|"), std::string::npos) << shown;
      if (ends || reply.stopped()) break;
    }
    shown += reply.finish();
    EXPECT_EQ(shown, reply.text());
    return reply;
  }

  std::vector<std::string> tokens_;
  VocabularyData data_;
  std::unique_ptr<Tokenizer> tokenizer_;
};

constexpr const char* whole_reply =
    "<|channel|>analysis<|message|>Two and two.<|end|><|start|>assistant<|channel|>final<|message|>Four.<|return|>";

TEST_F(ReplyInChannels, AnswerAndThinkingAreToldApartWithoutMarkup) {
  const ReplyText whole = reply(whole_reply);
  EXPECT_EQ(whole.text(), "Two and two.\n\nFour.");
  EXPECT_EQ(whole.thought(), (ThoughtPart{true, false, 14}));
  EXPECT_EQ(whole.completed(), whole.text().size());
}

TEST_F(ReplyInChannels, AStopStringIsLookedForInWhatTheModelWrote) {
  EXPECT_EQ(reply(whole_reply, {"\n\n"}).text(), "Two and two.\n\nFour.") << "the blank line is put between them";
  EXPECT_EQ(reply(whole_reply, {".F"}).text(), "Two and two.\n\nFour.") << "none reaches across messages";
  EXPECT_EQ(reply(whole_reply, {"our"}).text(), "Two and two.\n\nF");
  const ReplyText stopped = reply(whole_reply, {"two."});
  EXPECT_EQ(stopped.text(), "Two and ");
  EXPECT_EQ(stopped.thought(), (ThoughtPart{true, true, 8}));
}

TEST_F(ReplyInChannels, ItsTokensAreKeptAndThoseOfItsAnswerSpellIt) {
  const std::vector<uint32_t> ids = ids_of(whole_reply);
  const TurnTokens tokens = tokens_of_reply(*tokenizer_, ids, "Two and two.\n\nFour.", true);
  EXPECT_EQ(tokens.ids.size() + 1, ids.size());
  EXPECT_EQ(tokens.ending, (std::vector<uint32_t>{ids.back()}));
  EXPECT_FALSE(spells(*tokenizer_, tokens, "Four."));
  EXPECT_TRUE(spells(*tokenizer_, tokens_of_answer(*tokenizer_, tokens), "Four."));
}

// As the template of gpt-oss has it: what was thought is given beside the answer.
TEST_F(ReplyInChannels, ItsAnswerStandsInLaterPromptsAndItsThinkingBesideIt) {
  constexpr const char* text =
      "{% for m in messages %}<|start|>{{ m.role }}<|message|>{{ m.content }}{% if m.thinking and loop.last %}"
      "[{{ m.thinking }}]{% endif %}<|end|>{% endfor %}";
  const auto form = ChatTemplate::create(text, *tokenizer_);
  ASSERT_EQ(form->warning(), "");
  ChatTurn answer{"assistant", "ab<|end|>", {}, "Hm."};
  const std::vector<ChatTurn> turns = {{"user", "hi"}, answer};
  const auto ids = form->render_to_ids(turns, *tokenizer_);
  EXPECT_EQ(tokenizer_->decode(ids, false),
            "<|start|>user<|message|>hi<|end|><|start|>assistant<|message|>ab<|end|>[Hm.]<|end|>");
  EXPECT_EQ(std::ranges::count(ids, *tokenizer_->find_special("<|end|>")), 2) << "that in the answer is its text";
}

TEST(TextModel, AFolderWithoutTokenizerIsRefused) {
  const ModelFile file = ModelFile::open(golden_folder() / "tiny-llama3");
  expect_error("tokenizer.json", [&] { make_text_model(file); });
}

/// Tells a guard of words as tokens, a blank before each; the number of them at which it fires, 0 where it does not.
size_t fires_at(LoopGuard& guard, const std::vector<std::string>& words) {
  for (size_t i = 0; i < words.size(); ++i)
    if (guard.push(static_cast<uint32_t>(std::hash<std::string>()(words[i])), words[i])) return i + 1;
  return 0;
}

std::vector<std::string> times(size_t count, const std::vector<std::string>& words,
                               const std::vector<std::string>& before = {}) {
  std::vector<std::string> all = before;
  for (size_t i = 0; i < count; ++i) all.insert(all.end(), words.begin(), words.end());
  return all;
}

TEST(LoopGuardTest, FiresAtTheEndOfTheEighthTime) {
  LoopGuard guard;
  EXPECT_EQ(fires_at(guard, times(20, {" a", " guide", ","}, {"It", " is"})), 2u + 8 * 3);
  LoopGuard lines;
  EXPECT_EQ(fires_at(lines, times(20, {"I", " do", " not", " know", ".", "\n"})), 8u * 6);
  LoopGuard seven;
  EXPECT_EQ(fires_at(seven, times(7, {" a", " guide", ","}, {"It", " is"})), 0u);
  std::vector<std::string> longest;
  for (uint32_t i = 0; i < LoopGuard::kLongest; ++i) longest.push_back("w" + std::to_string(i));
  LoopGuard far;
  EXPECT_EQ(fires_at(far, times(9, longest)), size_t{LoopGuard::kTimes} * LoopGuard::kLongest);
}

TEST(LoopGuardTest, BeginsAnewWhereItFired) {
  LoopGuard guard;
  const auto words = times(8, {" a", " guide", ","});
  EXPECT_EQ(fires_at(guard, words), words.size());
  EXPECT_EQ(fires_at(guard, words), words.size()) << "not at the next token";
}

TEST(LoopGuardTest, LeavesShortPatternsDigitsCodeAndTablesAlone) {
  LoopGuard short_ones;
  EXPECT_EQ(fires_at(short_ones, times(60, {" ha"})), 0u);
  EXPECT_EQ(fires_at(short_ones, times(60, {" tick", " tock"})), 0u);
  LoopGuard digits;
  EXPECT_EQ(fires_at(digits, times(20, {"1", "4", "2", "8", "5", "7"}, {"0", "."})), 0u);
  LoopGuard code;
  EXPECT_EQ(fires_at(code, times(20, {"x", " =", " y", "\n"}, {"```", "py", "\n"})), 0u);
  EXPECT_EQ(fires_at(code, times(20, {" a", " guide", ","}, {"```", "\n"})), 2u + 8 * 3) << "behind the block";
  LoopGuard table;
  EXPECT_EQ(fires_at(table, times(20, {"|", " a", " |", " b", " |", "\n"})), 0u);
}

}  // namespace
}  // namespace canopy::test
