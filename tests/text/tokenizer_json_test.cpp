#include <gtest/gtest.h>

#include <functional>

#include "engine/base/error.h"
#include "engine/text/tokenizer.h"
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

TEST(TokenizerJson, SplitByALiteral) {
  json root = tiny_json();
  root["pre_tokenizer"]["pretokenizers"][0]["pattern"] = {{"String", "\\E.\\E"}};
  const auto tokenizer = Tokenizer::from_tokenizer_json(root.dump());
  const auto ids = tokenizer->encode("in\\E.\\Ein", SpecialTokens::parse);
  EXPECT_EQ(tokenizer->decode(ids), "in\\E.\\Ein");
  EXPECT_EQ(ids.front(), ids.back());
}

void expect_refused(const std::string& text, const std::string& part, const std::string& config = {}) {
  try {
    Tokenizer::from_tokenizer_json(text, config);
    FAIL() << "accepted; expected an error with: " << part;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::bad_input);
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

TEST(TokenizerJsonErrors, EachNamesWhatIsWrong) {
  const auto refused = [](const char* part, const std::function<void(json&)>& damage) {
    json root = tiny_json();
    damage(root);
    expect_refused(root.dump(), part);
  };
  refused("\"Unigram\"", [](json& r) { r["model"]["type"] = "Unigram"; });
  refused("end_of_word_suffix", [](json& r) { r["model"]["end_of_word_suffix"] = "</w>"; });
  refused("model", [](json& r) { r.erase("model"); });
  refused("vocab", [](json& r) { r["model"].erase("vocab"); });
  refused("-1", [](json& r) { r["model"]["vocab"]["a"] = -1; });
  refused("1.5", [](json& r) { r["model"]["vocab"]["a"] = 1.5; });
  refused("4000000000", [](json& r) { r["model"]["vocab"]["a"] = 4000000000u; });
  refused("below 1048576", [](json& r) { r["added_tokens"][0]["id"] = 1ull << 40; });
  refused("Merge 0", [](json& r) { r["model"]["merges"][0] = {"no such", "token"}; });
  refused("not as expected", [](json& r) { r["model"]["merges"][0] = 7; });
  refused("\"Lowercase\"", [](json& r) { r["normalizer"]["type"] = "Lowercase"; });
  refused("\"Whitespace\"", [](json& r) { r["pre_tokenizer"] = {{"type", "Whitespace"}}; });
  refused("decoder \"ByteLevel\"", [](json& r) { r["pre_tokenizer"] = nullptr; });
  refused("decoder \"none\"", [](json& r) { r["pre_tokenizer"] = r["decoder"] = nullptr; });
  refused("\"Sideways\"", [](json& r) { r["pre_tokenizer"]["pretokenizers"][0]["behavior"] = "Sideways"; });
  refused("regular expression", [](json& r) { r["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = "(("; });
  refused("add_prefix_space", [](json& r) { r["pre_tokenizer"]["pretokenizers"][1]["add_prefix_space"] = true; });
  refused("single_word", [](json& r) { r["added_tokens"][0]["single_word"] = true; });
}

TEST(TokenizerJsonErrors, DamagedText) {
  expect_refused("", "not valid JSON");
  expect_refused("{", "not valid JSON");
  expect_refused("[]", "JSON object");
  expect_refused("{\"model\": \"\xFF\"}", "not valid JSON");
  expect_refused(std::string(3000, '[') + std::string(3000, ']'), "64 levels");
  expect_refused(tiny_json().dump(), "not as expected", "{\"eos_token\": 7}");
}

TEST(TokenizerJsonErrors, EveryTruncationIsRefused) {
  const std::string whole = tiny_json().dump();
  for (size_t size = 0; size < whole.size(); size += whole.size() / 97) expect_refused(whole.substr(0, size), "");
}

}  // namespace
}  // namespace canopy
