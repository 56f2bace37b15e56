#include "engine/session/reply_text.h"

#include <gtest/gtest.h>

#include "engine/format/model_file.h"
#include "engine/session/text_model.h"
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

TEST(TextModel, AFolderWithoutTokenizerIsRefused) {
  const ModelFile file = ModelFile::open(golden_folder() / "tiny-llama3");
  expect_error("tokenizer.json", [&] { make_text_model(file); });
}

}  // namespace
}  // namespace canopy::test
