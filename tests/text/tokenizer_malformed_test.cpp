// Each case is a tokenizer.json or tokenizer_config.json with one named fault, and the words of the refusal: file,
// field, value and what is allowed.

#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <ostream>

#include "engine/text/tokenizer.h"
#include "tests/base/expect_error.h"

namespace canopy {
namespace {

using nlohmann::json;

struct Files {
  json tokenizer = json::parse(R"j({
    "added_tokens": [{"id": 3, "content": "<s>", "special": true}],
    "normalizer": {"type": "NFC"},
    "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
      {"type": "Split", "pattern": {"Regex": "\\s+"}, "behavior": "Isolated"},
      {"type": "ByteLevel", "add_prefix_space": false, "use_regex": false}]},
    "decoder": {"type": "ByteLevel"},
    "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": [["a", "b"]]}})j");
  json config = json::parse(R"j({"bos_token": "<s>", "eos_token": {"content": "<s>"}, "chat_template": "T"})j");

  json& model() { return tokenizer["model"]; }
  json& added() { return tokenizer["added_tokens"][0]; }
  json& split() { return tokenizer["pre_tokenizer"]["pretokenizers"][0]; }
  json& byte_level() { return tokenizer["pre_tokenizer"]["pretokenizers"][1]; }
};

struct Case {
  const char* name;
  const char* message;
  std::function<void(Files&)> damage;
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.name;
}

const Case cases[] = {
    {"NoObject", "tokenizer.json must be a JSON object, but is an array.",
     [](Files& f) { f.tokenizer = json::array(); }},
    {"ModelMissing", "tokenizer.json lacks the field 'model'.", [](Files& f) { f.tokenizer.erase("model"); }},
    {"ModelNull", "tokenizer.json lacks the field 'model'.", [](Files& f) { f.model() = nullptr; }},
    {"ModelNumber", "The model of tokenizer.json must be a JSON object, but is 3.", [](Files& f) { f.model() = 3; }},
    {"ModelOfAnotherKind", "The model \"WordPiece\" of tokenizer.json is not supported; supported: BPE, Unigram.",
     [](Files& f) { f.model()["type"] = "WordPiece"; }},
    {"ModelTypeNumber", "The field 'type' of the model of tokenizer.json is 7; a string is expected.",
     [](Files& f) { f.model()["type"] = 7; }},
    {"VocabMissing", "The model of tokenizer.json lacks the field 'vocab'.",
     [](Files& f) { f.model().erase("vocab"); }},
    {"VocabList", "The field 'vocab' of the model of tokenizer.json is an array; an object is expected.",
     [](Files& f) { f.model()["vocab"] = json::array({"a"}); }},
    {"VocabEmpty", "tokenizer.json: The vocabulary has no tokens.",
     [](Files& f) {
       f.model()["vocab"] = json::object();
       f.model()["merges"] = json::array();
       f.tokenizer.erase("added_tokens");
     }},
    {"IdNegative", "The token \"a\" of tokenizer.json has the id -1; an id must be a whole number from 0 on.",
     [](Files& f) { f.model()["vocab"]["a"] = -1; }},
    {"IdFraction", "The token \"a\" of tokenizer.json has the id 0.5; an id must be",
     [](Files& f) { f.model()["vocab"]["a"] = 0.5; }},
    {"IdText", "The token \"a\" of tokenizer.json has the id \"0\"; an id must be",
     [](Files& f) { f.model()["vocab"]["a"] = "0"; }},
    {"IdHuge", "The token \"a\" has the id 4000000000; ids must be below 1048576.",
     [](Files& f) { f.model()["vocab"]["a"] = 4000000000u; }},
    {"IdTwice", "The tokens \"a\" and \"ab\" of tokenizer.json both have the id 0; each needs its own.",
     [](Files& f) { f.model()["vocab"]["ab"] = 0; }},
    {"MergesMissing", "The model of tokenizer.json lacks the field 'merges'.",
     [](Files& f) { f.model().erase("merges"); }},
    {"MergesText", "The field 'merges' of the model of tokenizer.json is \"a b\"; a list is expected.",
     [](Files& f) { f.model()["merges"] = "a b"; }},
    {"MergeNumber", "Merge 0 of tokenizer.json is 7; two tokens in a list, or in a string with a space",
     [](Files& f) { f.model()["merges"][0] = 7; }},
    {"MergeOfOne", "Merge 0 of tokenizer.json is [\"a\"]; two tokens",
     [](Files& f) { f.model()["merges"][0] = json::array({"a"}); }},
    {"MergeOfThree", "Merge 0 of tokenizer.json is [\"a\",\"b\",\"c\"]; two tokens",
     [](Files& f) {
       f.model()["merges"][0] = json::array({"a", "b", "c"});
     }},
    {"MergeOfNumbers", "Merge 0 of tokenizer.json is [1,2]; two tokens",
     [](Files& f) {
       f.model()["merges"][0] = json::array({1, 2});
     }},
    {"MergeWithoutSpace", "tokenizer.json: Merge 0 is \"ab\"; it must be two tokens with a space between them.",
     [](Files& f) { f.model()["merges"][0] = "ab"; }},
    {"MergeUnknown", "tokenizer.json: Merge 0, \"a z\", needs the token \"z\", which is not in the vocabulary.",
     [](Files& f) { f.model()["merges"][0] = "a z"; }},
    {"MergeResultUnknown", "tokenizer.json: Merge 0, \"b a\", needs the token \"ba\", which is not in the vocabulary.",
     [](Files& f) { f.model()["merges"][0] = "b a"; }},
    {"SuffixOption", "The model option \"end_of_word_suffix\" of tokenizer.json is not supported; supported: none.",
     [](Files& f) { f.model()["end_of_word_suffix"] = "</w>"; }},
    {"FlagNumber", "The field 'ignore_merges' of the model of tokenizer.json is 1; true or false is expected.",
     [](Files& f) { f.model()["ignore_merges"] = 1; }},
    {"AddedTokensObject", "The field 'added_tokens' of tokenizer.json is an object; a list is expected.",
     [](Files& f) { f.tokenizer["added_tokens"] = json::object(); }},
    {"AddedTokenText", "An added token of tokenizer.json must be a JSON object, but is \"<s>\".",
     [](Files& f) { f.added() = "<s>"; }},
    {"AddedTokenWithoutId", "An added token of tokenizer.json lacks the field 'id'.",
     [](Files& f) { f.added().erase("id"); }},
    {"AddedTokenWithoutContent", "An added token of tokenizer.json lacks the field 'content'.",
     [](Files& f) { f.added().erase("content"); }},
    {"AddedTokenIdHuge", "The token \"<s>\" has the id 1099511627776; ids must be below 1048576.",
     [](Files& f) { f.added()["id"] = 1ull << 40; }},
    {"AddedTokenSingleWordText", "The field 'single_word' of an added token of tokenizer.json is \"x\"; true or false",
     [](Files& f) { f.added()["single_word"] = "x"; }},
    {"NormalizerUnknown", "The normalizer \"Lowercase\" of tokenizer.json is not supported; supported: NFC, NFD,",
     [](Files& f) { f.tokenizer["normalizer"]["type"] = "Lowercase"; }},
    {"NormalizerList", "The normalizer of tokenizer.json must be a JSON object, but is an array.",
     [](Files& f) { f.tokenizer["normalizer"] = json::array(); }},
    {"NormalizerWithoutType", "The normalizer of tokenizer.json lacks the field 'type'.",
     [](Files& f) { f.tokenizer["normalizer"].erase("type"); }},
    {"SequenceWithoutParts", "The pre_tokenizer of tokenizer.json lacks the field 'pretokenizers'.",
     [](Files& f) { f.tokenizer["pre_tokenizer"].erase("pretokenizers"); }},
    {"PreTokenizerUnknown", "The pre-tokenizer \"Whitespace\" of tokenizer.json is not supported; supported: Sequence,",
     [](Files& f) { f.split()["type"] = "Whitespace"; }},
    {"SplitWithoutPattern", "The pre_tokenizer of tokenizer.json lacks the field 'pattern'.",
     [](Files& f) { f.split().erase("pattern"); }},
    {"SplitPatternNumber", "The pattern in the pre_tokenizer of tokenizer.json must be a JSON object, but is 1.",
     [](Files& f) { f.split()["pattern"] = 1; }},
    {"SplitPatternEmpty", "The pattern in the pre_tokenizer of tokenizer.json lacks the field 'String'.",
     [](Files& f) { f.split()["pattern"] = json::object(); }},
    {"SplitBehaviour", "The Split behavior \"Sideways\" of tokenizer.json is not supported; supported: Isolated,",
     [](Files& f) { f.split()["behavior"] = "Sideways"; }},
    {"RegexBroken",
     "the pattern in the pre_tokenizer of tokenizer.json: The regular expression \"((\" is not valid at byte 2",
     [](Files& f) { f.split()["pattern"]["Regex"] = "(("; }},
    {"RegexOfAnotherDialect", "The regular expression \"(?<=a+)b\" is not valid at byte",
     [](Files& f) { f.split()["pattern"]["Regex"] = "(?<=a+)b"; }},
    {"PrefixSpaceBehind", "The ByteLevel option \"add_prefix_space: true\" of tokenizer.json is not supported",
     [](Files& f) { f.byte_level()["add_prefix_space"] = true; }},
    {"DecoderMissing", "The decoder \"none\" of tokenizer.json is not supported; supported: one that writes U+2581",
     [](Files& f) {
       f.tokenizer["pre_tokenizer"] = nullptr;
       f.tokenizer.erase("decoder");
     }},
    {"PostProcessorText", "The post_processor of tokenizer.json must be a JSON object, but is \"x\".",
     [](Files& f) { f.tokenizer["post_processor"] = "x"; }},
    {"PostProcessorWithoutPieces", "The post_processor of tokenizer.json lacks the field 'single'.",
     [](Files& f) {
       f.tokenizer["post_processor"] = {{"type", "TemplateProcessing"}};
     }},
    {"ConfigNoObject", "tokenizer_config.json must be a JSON object, but is an array.",
     [](Files& f) { f.config = json::array(); }},
    {"ConfigEosNumber", "The field 'eos_token' of tokenizer_config.json is 7; a string is expected.",
     [](Files& f) { f.config["eos_token"] = 7; }},
    {"ConfigEosWithoutContent", "The field 'eos_token' of tokenizer_config.json lacks the field 'content'.",
     [](Files& f) { f.config["eos_token"] = json::object(); }},
    {"ConfigAddBosText", "The field 'add_bos_token' of tokenizer_config.json is \"yes\"; true or false is expected.",
     [](Files& f) { f.config["add_bos_token"] = "yes"; }},
    {"ConfigTemplateNumber", "The field 'chat_template' of tokenizer_config.json is 1; a string is expected.",
     [](Files& f) { f.config["chat_template"] = 1; }},
    {"ConfigTemplateWithoutName",
     "An entry of the field 'chat_template' of tokenizer_config.json lacks the field 'name'.",
     [](Files& f) { f.config["chat_template"] = json::array({json::object()}); }},
    {"ConfigAddedTokens",
     "The field 'added_tokens_decoder' of tokenizer_config.json is an array; an object is expected.",
     [](Files& f) { f.config["added_tokens_decoder"] = json::array(); }},
    {"ConfigAddedTokenKey", "'added_tokens_decoder' of tokenizer_config.json has the key \"x\"; keys must be ids.",
     [](Files& f) { f.config["added_tokens_decoder"]["x"] = json::object(); }},
    {"ConfigAddedTokenEmpty", "The added token 5 of tokenizer_config.json lacks the field 'content'.",
     [](Files& f) { f.config["added_tokens_decoder"]["5"] = json::object(); }},
};

class TokenizerMalformed : public testing::TestWithParam<Case> {};

TEST_P(TokenizerMalformed, IsRefusedByName) {
  Files files;
  ASSERT_NO_THROW(Tokenizer::from_tokenizer_json(files.tokenizer.dump(), files.config.dump()));
  GetParam().damage(files);
  test::expect_error(GetParam().message,
                     [&] { Tokenizer::from_tokenizer_json(files.tokenizer.dump(), files.config.dump()); });
}

INSTANTIATE_TEST_SUITE_P(Cases, TokenizerMalformed, testing::ValuesIn(cases),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(TokenizerMalformedText, IsRefusedByName) {
  const auto refused = [](const char* message, const std::string& text) {
    test::expect_error(message, [&] { Tokenizer::from_tokenizer_json(text); });
    test::expect_error("tokenizer_config.json",
                       [&] { Tokenizer::from_tokenizer_json(Files().tokenizer.dump(), text); });
  };
  refused("tokenizer.json is not valid JSON", "{");
  refused("tokenizer.json is not valid JSON", "{\"model\": \"\xFF\"}");
  refused("tokenizer.json is nested more than 64 levels deep.", std::string(3000, '['));
}

}  // namespace
}  // namespace canopy
