#include <gtest/gtest.h>

#include <algorithm>

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

TEST(TokenizerJson, AnObjectOfNamedTemplatesHasOneForChats) {
  const auto tokenizer =
      Tokenizer::from_tokenizer_json(tiny_json().dump(), R"({"chat_template": {"tool_use": "U", "default": "T"}})");
  EXPECT_EQ(tokenizer->chat_template(), "T");
}

// What tokenizers 0.22 makes of these texts: the borders of "foo" in bytes, and of "oob", which is no single word.
TEST(TokenizerJson, ASingleWordStandsBesideNoLetterDigitOrLine) {
  struct Case {
    const char* text;
    std::vector<std::pair<size_t, size_t>> found;
  };
  const Case cases[] = {
      {"foo", {{0, 3}}},
      {"a foo b", {{2, 5}}},
      {"afoo", {}},
      {"foob", {}},
      {"foo_", {}},
      {"_foo", {}},
      {"(foo)", {{1, 4}}},
      {"foofoo", {}},
      {"foo foo", {{0, 3}, {4, 7}}},
      {"xfoobar", {}},
      {"a oob", {{2, 5}}},
      {"\u00e9foo", {}},              // e with acute
      {"foo\u00b2", {{0, 3}}},        // superscript two, which is no decimal digit
      {"foo\u0301", {}},              // a mark that combines
      {"\u24d0foo", {}},              // a letter in a circle
      {"foo\u200d", {}},              // zero width joiner
      {"\u0663foo", {}},              // an Arabic digit
      {"\u2013foo\u2013", {{3, 6}}},  // dashes
      {"\u4e2dfoo", {}},
      {"\U0001f642foo", {{4, 7}}},
      {"\u2177foo", {}},        // a Roman number
      {"\u00b7foo", {{2, 5}}},  // middle dot
  };
  const AddedTokens added({{.id = 7, .spelling = "foo", .special = false, .single_word = true},
                           {.id = 8, .spelling = "oob", .special = false}});
  for (const Case& c : cases) {
    std::vector<std::pair<size_t, size_t>> found;
    size_t at = 0;
    while (const auto match = added.find(c.text, at, {})) {
      found.emplace_back(match->begin, match->end);
      at = match->end;
    }
    EXPECT_EQ(found, c.found) << c.text;
  }
}

TEST(TokenizerJson, ASingleWordTakesTheWhiteSpaceAroundItAsOthersDo) {
  json root = tiny_json();
  json token = {{"content", "foo"}, {"single_word", true}, {"lstrip", true}, {"rstrip", true}};
  const uint32_t id = 1000 + static_cast<uint32_t>(root["added_tokens"].size());
  token["id"] = id;
  for (const bool normalized : {false, true}) {
    for (const bool special : {false, true}) {
      token["normalized"] = normalized;
      token["special"] = special;
      json file = root;
      file["added_tokens"].push_back(token);
      const auto tokenizer = Tokenizer::from_tokenizer_json(file.dump());
      EXPECT_EQ(tokenizer->encode("foo  foo\n", SpecialTokens::parse), (std::vector<uint32_t>{id, id}));
      EXPECT_EQ(std::ranges::count(tokenizer->encode("foo afoo", SpecialTokens::parse), id), 1);
    }
  }
}

TEST(TokenizerJson, NoTextMergesIntoATokenThatIsControlByItsName) {
  const auto tokenizer = Tokenizer::from_tokenizer_json(R"({
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "use_regex": false},
    "decoder": {"type": "ByteLevel"},
    "model": {"type": "BPE", "vocab": {"<": 0, "E": 1, "O": 2, "T": 3, ">": 4, "OT": 5, "EOT": 6, "<EOT": 7, "<EOT>": 8},
              "merges": ["O T", "E OT", "< EOT", "<EOT >"]}})");
  EXPECT_EQ(tokenizer->encode("<EOT>", SpecialTokens::parse), (std::vector<uint32_t>{8}));
  EXPECT_EQ(tokenizer->encode("<EOT>", SpecialTokens::as_text), (std::vector<uint32_t>{7, 4}));
  EXPECT_EQ(std::vector<uint32_t>(tokenizer->end_ids().begin(), tokenizer->end_ids().end()),
            (std::vector<uint32_t>{8}));
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
