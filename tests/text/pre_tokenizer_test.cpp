#include "engine/text/pre_tokenizer.h"

#include <gtest/gtest.h>

#include "engine/base/error.h"

namespace canopy {
namespace {

using Pieces = std::vector<std::string_view>;

TEST(PreTokenizer, Gpt2KeepsTheSpaceInFrontOfAWord) {
  EXPECT_EQ(PreTokenizer::named("gpt-2").split("I'm 2023  you"), (Pieces{"I", "'m", " 2023", " ", " you"}));
}

TEST(PreTokenizer, SmolLmCutsEveryDigitFirst) {
  EXPECT_EQ(PreTokenizer::named("smollm").split("a 12b\n"), (Pieces{"a", " ", "1", "2", "b", "\n"}));
}

TEST(PreTokenizer, Llama3TakesThreeDigitsAndQwenOne) {
  EXPECT_EQ(PreTokenizer::named("llama-bpe").split("1234"), (Pieces{"123", "4"}));
  EXPECT_EQ(PreTokenizer::named("qwen2").split("1234"), (Pieces{"1", "2", "3", "4"}));
}

TEST(PreTokenizer, DeepSeekCoderCutsLinesWordsPunctuationAndDigits) {
  EXPECT_EQ(PreTokenizer::named("deepseek-coder").split("def  f(x):\n\treturn 12"),
            (Pieces{"def", " ", " f", "(", "x", "):", "\n", "\treturn", " ", "1", "2"}));
}

TEST(PreTokenizer, DeepSeekLlmKeepsNumbersWholeAndTakesAsciiLettersForPunctuation) {
  // Its range from ':' to '~' has the letters of ASCII in it, so that words with others fall apart.
  EXPECT_EQ(PreTokenizer::named("deepseek-llm").split("The Gr\u00FC\u00DFe \u05D0! 123  "),
            (Pieces{"The", " Gr", "\u00FC\u00DF", "e", " \u05D0", "!", " ", "123", "  "}));
}

TEST(PreTokenizer, SeedCoderTakesNoLineBreaksAlong) {
  EXPECT_EQ(PreTokenizer::named("seed-coder").split("a();\n\n12"), (Pieces{"a", "();", "\n\n", "1", "2"}));
  EXPECT_EQ(PreTokenizer::named("qwen2").split("a();\n\n12"), (Pieces{"a", "();\n\n", "1", "2"}));
}

TEST(PreTokenizer, VikingCutsAtSentencesAndDigits) {
  EXPECT_EQ(PreTokenizer::named("viking").split("Hei maailma, 12!"),
            (Pieces{"Hei", " maailma", ",", " ", "1", "2", "!"}));
}

TEST(PreTokenizer, WithoutANameItIsTheDefaultOfLlamaCpp) {
  const Pieces expected = {"a", ",", " `", "$", " ", "123", "45"};
  for (const char* name : {"", "default"}) {
    EXPECT_EQ(PreTokenizer::named(name).split("a, `$ 12345"), expected) << name;
    EXPECT_NE(warning_of_pre_tokenizer(name).find("tokenizer.ggml.pre"), std::string::npos);
  }
  EXPECT_EQ(warning_of_pre_tokenizer("smollm"), "");
}

TEST(PreTokenizer, OtherNamesForKnownOnes) {
  const std::pair<const char*, const char*> names[] = {
      {"mellum", "gpt-2"},           {"gigachat", "gpt-2"},     {"a.x-4.0", "gpt-2"},
      {"falcon-h1", "llama-bpe"},    {"midm-2.0", "llama-bpe"}, {"kormo", "qwen2"},
      {"jina-v5-nano", "llama-bpe"}, {"f2llmv2", "qwen2"},      {"kanana2", "gpt-4o"},
      {"talkie", "gpt-4o"},          {"glm5", "glm4"},
  };
  const char* text = "It's 1234 HelloWorld\u00E9\n\n  x'LL ---\n";
  for (const auto& [other, known] : names) {
    EXPECT_EQ(PreTokenizer::named(other).split(text), PreTokenizer::named(known).split(text)) << other;
    const PreTokenizerTraits a = traits_of_pre_tokenizer(other), b = traits_of_pre_tokenizer(known);
    EXPECT_EQ(a.normalizes_nfc, b.normalizes_nfc) << other;
    EXPECT_EQ(a.ignores_merges, b.ignores_merges) << other;
    EXPECT_EQ(a.adds_bos, b.adds_bos) << other;
  }
}

TEST(PreTokenizer, EmptyTextHasNoPieces) {
  EXPECT_TRUE(PreTokenizer::named("gpt-2").split("").empty());
}

TEST(PreTokenizer, WithoutStagesATextIsOnePiece) {
  EXPECT_EQ(PreTokenizer().split("a b"), (Pieces{"a b"}));
}

std::vector<PreTokenizer::Stage> one_stage(const char* regex, PreTokenizer::Behavior behavior, bool invert) {
  std::vector<PreTokenizer::Stage> stages;
  stages.push_back({Regex(regex), behavior, invert});
  return stages;
}

TEST(PreTokenizer, RemovedDropsMatchesAndInvertedTheRest) {
  using enum PreTokenizer::Behavior;
  EXPECT_EQ(PreTokenizer(one_stage(" +", removed, false)).split("a  b"), (Pieces{"a", "b"}));
  EXPECT_EQ(PreTokenizer(one_stage(" +", removed, true)).split("a  b"), (Pieces{"  "}));
  EXPECT_EQ(PreTokenizer(one_stage(" +", isolated, true)).split("a  b"), (Pieces{"a", "  ", "b"}));
}

TEST(PreTokenizer, EmptyMatchesEndAndLoseNothing) {
  using enum PreTokenizer::Behavior;
  EXPECT_EQ(PreTokenizer(one_stage("x*", isolated, false)).split("\xC3\xA9xxb"), (Pieces{"\xC3\xA9", "xx", "b"}));
}

TEST(PreTokenizer, PiecesOfAnIsolatingStageAreTheWholeText) {
  std::string text;
  for (int i = 0; i < 3000; ++i) text += i % 7 == 0 ? "\n " : i % 3 == 0 ? "\xE4\xBD\xA0'LL" : "w9 ";
  for (const char* name : {"gpt-2", "smollm", "qwen2", "llama-bpe"}) {
    std::string joined;
    for (const std::string_view piece : PreTokenizer::named(name).split(text)) joined += piece;
    EXPECT_EQ(joined, text) << name;
  }
}

TEST(PreTokenizer, UnknownNameListsWhatIsSupported) {
  try {
    PreTokenizer::named("afmoe");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::bad_input);
    EXPECT_NE(std::string(error.what()).find("afmoe"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("smollm"), std::string::npos);
  }
}

TEST(Regex, InvalidExpressionSaysWhere) {
  try {
    Regex regex("a(b");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("a(b"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("byte 3"), std::string::npos);
  }
}

TEST(Regex, ExplodingExpressionIsStopped) {
  const Regex regex("(a|a?)+(a*)+$");
  const std::string text = std::string(200, 'a') + "b";
  Regex::Matcher matcher;
  const auto search = [&] { (void)regex.find(text, 0, matcher); };
  EXPECT_THROW(search(), Error);
}

}  // namespace
}  // namespace canopy
