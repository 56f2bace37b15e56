#include <gtest/gtest.h>

#include "engine/text/tokenizer.h"
#include "tests/base/expect_error.h"
#include "tests/text/golden_text.h"

namespace canopy {
namespace {

using nlohmann::json;

json tiny_json() {
  return json::parse(golden::read_text(golden::folder() / "tiny-qwen3" / "tokenizer.json"));
}

TEST(TokenizerJson, ConfigNamesEosAndBringsTheTemplate) {
  const auto tokenizer = golden::tiny_tokenizer();
  EXPECT_EQ(tokenizer->eos(), 1002u);
  EXPECT_EQ(tokenizer->bos(), std::nullopt);
  EXPECT_FALSE(tokenizer->adds_bos());
  EXPECT_NE(tokenizer->chat_template().find("<|im_start|>"), std::string::npos);
}

TEST(TokenizerJson, ATokenMayBeAnObjectAndATemplateAList) {
  const auto tokenizer = Tokenizer::from_tokenizer_json(
      tiny_json().dump(),
      R"({"eos_token": {"content": "<|endoftext|>"}, "chat_template": [{"name": "default", "template": "T"}]})");
  EXPECT_EQ(tokenizer->eos(), 1000u);
  EXPECT_EQ(tokenizer->chat_template(), "T");
}

TEST(TokenizerJson, MergesMayBeStrings) {
  json root = tiny_json();
  for (json& merge : root["model"]["merges"]) {
    merge = merge.at(0).get<std::string>() + " " + merge.at(1).get<std::string>();
  }
  const auto tokenizer = Tokenizer::from_tokenizer_json(root.dump());
  EXPECT_EQ(tokenizer->encode("def __init__(self):", SpecialTokens::parse),
            golden::tiny_tokenizer()->encode("def __init__(self):", SpecialTokens::parse));
}

TEST(TokenizerJson, TheTemplateOfThePostProcessorPutsBosInFront) {
  json root = tiny_json();
  root["post_processor"] = {
      {"type", "Sequence"},
      {"processors",
       {{{"type", "TemplateProcessing"},
         {"single", {{{"SpecialToken", {{"id", "<|endoftext|>"}}}}, {{"Sequence", {{"id", "A"}}}}}}}}}};
  const auto tokenizer = Tokenizer::from_tokenizer_json(root.dump());
  EXPECT_TRUE(tokenizer->adds_bos());
  EXPECT_EQ(tokenizer->bos(), 1000u);
}

TEST(TokenizerJson, AddedTokensMayTakeWhiteSpace) {
  json root = tiny_json();
  root["added_tokens"][3]["lstrip"] = true;
  root["added_tokens"][3]["rstrip"] = true;
  const auto tokenizer = Tokenizer::from_tokenizer_json(root.dump());
  EXPECT_EQ(tokenizer->encode("<|im_end|> \n<|mask|>  <|im_end|>", SpecialTokens::parse),
            (std::vector<uint32_t>{1002, 1003, 1002}));
}

TEST(TokenizerJson, AddedTokensAreOfALengthThatTextsHave) {
  json root = tiny_json();
  root["added_tokens"][3]["content"] = std::string(5000, 'x');
  test::expect_error("has 5000 bytes; at most 4096", [&] { Tokenizer::from_tokenizer_json(root.dump()); });
}

TEST(TokenizerJson, SplitByALiteral) {
  json root = tiny_json();
  root["pre_tokenizer"]["pretokenizers"][0]["pattern"] = {{"String", "\\E.\\E"}};
  const auto tokenizer = Tokenizer::from_tokenizer_json(root.dump());
  const auto ids = tokenizer->encode("in\\E.\\Ein", SpecialTokens::parse);
  EXPECT_EQ(tokenizer->decode(ids), "in\\E.\\Ein");
  EXPECT_EQ(ids.front(), ids.back());
}

TEST(TokenizerJsonErrors, EveryTruncationIsRefused) {
  const std::string whole = tiny_json().dump();
  for (size_t size = 0; size < whole.size(); size += whole.size() / 97) {
    test::expect_error("tokenizer.json is not valid JSON",
                       [&] { Tokenizer::from_tokenizer_json(whole.substr(0, size)); });
  }
}

}  // namespace
}  // namespace canopy
