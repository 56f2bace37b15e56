// Unigram models from tokenizer.json.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "engine/text/tokenizer.h"
#include "engine/text/unigram_tokenizer.h"
#include "tests/base/expect_error.h"
#include "tests/base/processor_time.h"

namespace canopy {
namespace {

using nlohmann::json;
using Ids = std::vector<uint32_t>;

json unigram(const std::vector<std::pair<std::string, double>>& tokens) {
  json vocab = json::array();
  for (const auto& [token, score] : tokens) vocab.push_back(json::array({token, score}));
  return {{"model", {{"type", "Unigram"}, {"unk_id", 0}, {"vocab", vocab}, {"byte_fallback", false}}},
          {"pre_tokenizer",
           {{"type", "Metaspace"}, {"replacement", "\u2581"}, {"prepend_scheme", "never"}, {"split", false}}},
          {"decoder", {{"type", "Metaspace"}, {"replacement", "\u2581"}}}};
}

json few_tokens() {
  return unigram(
      {{"<unk>", 0.0}, {"a", -3.0}, {"b", -3.0}, {"ab", -4.0}, {"abc", -20.0}, {"c", -3.0}, {"\u2581", -2.0}});
}

Ids unigram_ids(const json& root, std::string_view text) {
  return Tokenizer::from_tokenizer_json(root.dump())->encode(text, SpecialTokens::as_text);
}

TEST(UnigramModel, TakesTheCutOfTheLargestSum) {
  EXPECT_EQ(unigram_ids(few_tokens(), "ab"), (Ids{3}));
  EXPECT_EQ(unigram_ids(few_tokens(), "abc"), (Ids{3, 5})) << "-7 is more than -20 and than -9";
  EXPECT_EQ(unigram_ids(few_tokens(), "a b"), (Ids{1, 6, 2}));
  EXPECT_EQ(unigram_ids(few_tokens(), ""), Ids{});
}

TEST(UnigramModel, OfEqualSumsTheLongestFirstTokenStays) {
  // "aab": a+ab and aa+b are equal; the way over "aa" reaches "b" last and does not replace the other.
  const json root = unigram({{"<unk>", 0.0}, {"a", -1.0}, {"b", -1.0}, {"ab", -1.5}, {"aa", -1.5}});
  EXPECT_EQ(unigram_ids(root, "aab"), (Ids{1, 3}));
}

TEST(UnigramModel, UnknownCharactersInARowAreOneToken) {
  EXPECT_EQ(unigram_ids(few_tokens(), "axyzb"), (Ids{1, 0, 2}));
  EXPECT_EQ(unigram_ids(few_tokens(), "x\xFFy"), (Ids{0, 0, 0})) << "a damaged byte is a piece of its own";
}

TEST(UnigramModel, UnknownCharactersBecomeBytesWhereThereAreAll) {
  json root = few_tokens();
  root["model"]["byte_fallback"] = true;
  root["model"]["vocab"].push_back(json::array({"<0xC3>", -5.0}));
  root["model"]["vocab"].push_back(json::array({"<0xA9>", -5.0}));
  EXPECT_EQ(unigram_ids(root, "a\u00E9b"), (Ids{1, 7, 8, 2}));
  EXPECT_EQ(unigram_ids(root, "\u00E9\u00FC"), (Ids{0})) << "one byte has no token";
  const auto tokenizer = Tokenizer::from_tokenizer_json(root.dump());
  EXPECT_EQ(tokenizer->decode(Ids{1, 7, 8}), "a\u00E9");
  EXPECT_EQ(tokenizer->encode("<0xC3>", SpecialTokens::as_text).front(), 0u) << "no text spells a byte token";
}

TEST(UnigramModel, NoTextBecomesAControlToken) {
  json root = few_tokens();
  root["added_tokens"] = {{{"id", 0}, {"content", "<unk>"}, {"special", true}},
                          {{"id", 7}, {"content", "<s>"}, {"special", true}}};
  const auto tokenizer = Tokenizer::from_tokenizer_json(root.dump());
  EXPECT_EQ(tokenizer->encode("<s>a", SpecialTokens::parse), (Ids{7, 1}));
  for (const uint32_t id : tokenizer->encode("<s>a", SpecialTokens::as_text)) EXPECT_NE(id, 7u);
}

TEST(UnigramModel, AMillionCharactersTakeLinearTime) {
  const auto tokenizer = Tokenizer::from_tokenizer_json(few_tokens().dump());
  for (const char* unit : {"a", "x", " "}) {
    std::string text;
    for (int i = 0; i < 1'000'000; ++i) text += unit;
    const test::ProcessorClock clock;
    EXPECT_FALSE(tokenizer->encode(text, SpecialTokens::as_text).empty());
    EXPECT_LT(clock.seconds(), 30.0) << unit;
  }
}

TEST(UnigramModel, EachFaultIsNamed) {
  const auto refused = [](const char* words, const std::function<void(json&)>& damage) {
    json root = few_tokens();
    damage(root);
    test::expect_error(words, [&] { Tokenizer::from_tokenizer_json(root.dump()); });
  };
  refused("Token 1 of tokenizer.json is \"a\"; a token and its score in a list are expected.",
          [](json& r) { r["model"]["vocab"][1] = "a"; });
  refused("Token 2 of tokenizer.json is [\"b\",\"c\"]; a token and its score",
          [](json& r) { r["model"]["vocab"][2][1] = "c"; });
  refused("The field 'vocab' of the model of tokenizer.json is", [](json& r) { r["model"]["vocab"] = json::object(); });
  refused("tokenizer.json: The vocabulary has no tokens.", [](json& r) { r["model"]["vocab"] = json::array(); });
  refused("unknown token has the id 7", [](json& r) { r["model"]["unk_id"] = 7; });
  refused("The field 'unk_id' of the model of tokenizer.json is -1", [](json& r) { r["model"]["unk_id"] = -1; });
  refused("neither an unknown token nor a token for every byte", [](json& r) { r["model"].erase("unk_id"); });
  refused("\"ByteLevel\" of tokenizer.json is not supported", [](json& r) {
    r["pre_tokenizer"] = {{"type", "ByteLevel"}, {"add_prefix_space", false}};
  });
  refused("'precompiled_charsmap' of the normalizer of tokenizer.json is no base64", [](json& r) {
    r["normalizer"] = {{"type", "Precompiled"}, {"precompiled_charsmap", "?"}};
  });
  refused("normalizes text by a compiled table that is damaged", [](json& r) {
    r["normalizer"] = {{"type", "Precompiled"}, {"precompiled_charsmap", "AAAAAAAA"}};
  });
}

TEST(PrefixTree, FindsAllTokensThatATextBeginsWith) {
  const PrefixTree tree({{"b", 1}, {"ab", 2}, {"abcd", 3}, {"", 4}, {"a", 5}, {"abd", 6}, {"ab", 7}});
  const auto found = [&](std::string_view text) {
    std::vector<std::pair<size_t, uint32_t>> tokens;
    tree.for_each_prefix(text, [&](size_t length, uint32_t id) { tokens.emplace_back(length, id); });
    return tokens;
  };
  using Found = std::vector<std::pair<size_t, uint32_t>>;
  EXPECT_EQ(found("abcde"), (Found{{1, 5}, {2, 7}, {4, 3}}));
  EXPECT_EQ(found("abc"), (Found{{1, 5}, {2, 7}}));
  EXPECT_EQ(found("bab"), (Found{{1, 1}}));
  EXPECT_EQ(found("c"), Found{});
  EXPECT_EQ(found(""), Found{});
  PrefixTree().for_each_prefix("a", [](size_t, uint32_t) { FAIL(); });
  const std::string long_token(1025, 'x');
  test::expect_error("The token 8 has 1025 bytes; at most 1024", [&] { PrefixTree({{"a", 7}, {long_token, 8}}); });
}

}  // namespace
}  // namespace canopy
