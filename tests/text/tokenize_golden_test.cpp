// Every case of tokenize.json for tokenizers that the engine can build.

#include <gtest/gtest.h>

#include "engine/text/unicode.h"
#include "tests/text/golden_text.h"

namespace canopy {
namespace {

using Ids = std::vector<uint32_t>;
using nlohmann::json;

std::string streamed(const Tokenizer& tokenizer, const Ids& ids) {
  Utf8Stream stream;
  std::string text;
  for (const uint32_t id : ids) text += stream.push(tokenizer.token_bytes(id));
  text += stream.finish();
  // A stream cannot know where a text begins, so whoever shows it removes the space.
  return tokenizer.drops_leading_space() && text.starts_with(' ') ? text.substr(1) : text;
}

void expect_case(const Tokenizer& tokenizer, const json& expected, const std::string& text) {
  const auto ids = expected.at("ids").get<Ids>();
  const auto as_text = expected.contains("ids_no_special") ? expected.at("ids_no_special").get<Ids>() : ids;
  const auto decoded = expected.at("decoded").get<std::string>();
  EXPECT_EQ(tokenizer.encode(text, SpecialTokens::parse), ids);
  EXPECT_EQ(tokenizer.encode(text, SpecialTokens::as_text), as_text);
  EXPECT_EQ(tokenizer.decode(ids, false), decoded);
  EXPECT_EQ(tokenizer.decode(ids, true), expected.value("decoded_skip_special", decoded));
  EXPECT_EQ(streamed(tokenizer, ids), decoded);
}

void expect_all(const Tokenizer& tokenizer, const std::string& name) {
  const json golden = golden::read_json("tokenize.json");
  const json& expected = golden.at("tokenizers").at(name);
  EXPECT_EQ(tokenizer.adds_bos(), !expected.at("special_prefix").empty());
  ASSERT_FALSE(expected.at("cases").empty());
  for (const json& entry : expected.at("cases")) {
    const auto key = std::to_string(entry.at("i").get<int>());
    SCOPED_TRACE(name + ", string " + key);
    expect_case(tokenizer, entry, golden.at("strings").at(key).get<std::string>());
  }
  ASSERT_FALSE(expected.at("decode_only").empty());
  for (const json& entry : expected.at("decode_only")) {
    SCOPED_TRACE(name + ", ids " + entry.at("ids").dump());
    const auto ids = entry.at("ids").get<Ids>();
    EXPECT_EQ(tokenizer.decode(ids, false), entry.at("decoded").get<std::string>());
    EXPECT_EQ(streamed(tokenizer, ids), entry.at("decoded").get<std::string>());
  }
}

TEST(TokenizeGolden, TinyFromTokenizerJson) {
  const auto tokenizer = golden::tiny_tokenizer();
  EXPECT_EQ(tokenizer->vocab_size(), 1004u);
  expect_all(*tokenizer, "tiny");
}

TEST(TokenizeGolden, TinyFromGguf) {
  const auto tokenizer = golden::gguf_tokenizer(golden::folder() / "tiny-qwen3-f16.gguf");
  EXPECT_EQ(tokenizer->vocab_size(), 1010u);  // includes the padding rows
  expect_all(*tokenizer, "tiny");
}

TEST(TokenizeGolden, SmolLm2FromGguf) {
  const auto path = golden::default_model();
  if (path.empty()) GTEST_SKIP() << "the default model is not on this machine";
  const auto tokenizer = golden::gguf_tokenizer(path);
  EXPECT_EQ(tokenizer->vocab_size(), 49152u);
  expect_all(*tokenizer, "smollm2");
}

// Published tokenizers; the licences of Llama's keep them out of the repository.
class PublishedTokenizer : public testing::TestWithParam<const char*> {};

TEST_P(PublishedTokenizer, FromTokenizerJson) {
  const std::string name = GetParam();
  const auto tokenizer = golden::published_tokenizer(name);
  if (tokenizer == nullptr)
    GTEST_SKIP() << golden::published_folder(name) << " has no " << name << ".tokenizer.json.xz";
  expect_all(*tokenizer, name);
}

INSTANTIATE_TEST_SUITE_P(TokenizeGolden, PublishedTokenizer, testing::Values("qwen3", "llama3_1", "llama2"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace canopy
