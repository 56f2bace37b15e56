// The parts of a tokenizer.json around its model, each in a file of a few lines.

#include <gtest/gtest.h>

#include <array>
#include <thread>

#include "engine/base/error.h"
#include "engine/text/pre_tokenizer.h"
#include "engine/text/tokenizer.h"
#include "engine/text/vocabulary.h"
#include "tests/base/processor_time.h"

namespace canopy {
namespace {

using Ids = std::vector<uint32_t>;

// A vocabulary of characters; "_" stands for U+2581. Ids: 0 <unk>, 1 _, 2 a, 3 b, 4 _a, 5 ab, 6 aa, then the added
// tokens.
struct Characters {
  std::string normalizer = "null";
  std::string pre_tokenizer = "null";
  std::string decoder =
      R"({"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": "_"}, "content": " "},
    {"type": "ByteFallback"}, {"type": "Fuse"}]})";
  std::string added = "[]";
  std::string model_options = R"("unk_token": "<unk>")";

  std::unique_ptr<Tokenizer> build() const {
    const std::string text = R"({"normalizer": )" + normalizer + R"(, "pre_tokenizer": )" + pre_tokenizer +
                             R"(, "decoder": )" + decoder + R"(, "added_tokens": )" + added +
                             R"(, "model": {"type": "BPE", )" + model_options +
                             R"(, "vocab": {"<unk>": 0, "_": 1, "a": 2, "b": 3, "_a": 4, "ab": 5, "aa": 6},
                                 "merges": [["_", "a"], ["a", "b"], "a a"]}})";
    std::string marked;
    for (const char c : text) c == '_' ? marked += "\xE2\x96\x81" : marked += c;
    // Restore the field names, which contain underscores of their own.
    for (const char* name : {"pre_tokenizer", "added_tokens", "unk_token", "byte_fallback", "fuse_unk",
                             "prepend_scheme", "ignore_merges", "single_word"}) {
      std::string damaged;
      for (const char* c = name; *c != '\0'; ++c) *c == '_' ? damaged += "\xE2\x96\x81" : damaged += *c;
      for (size_t at = marked.find(damaged); at != std::string::npos; at = marked.find(damaged)) {
        marked.replace(at, damaged.size(), name);
      }
    }
    return Tokenizer::from_tokenizer_json(marked);
  }

  Ids encode(std::string_view text) const { return build()->encode(text, SpecialTokens::parse); }
};

constexpr const char* spaces_to_marks = R"({"type": "Replace", "pattern": {"String": " "}, "content": "_"})";

TEST(TokenizerPipeline, PrependAndReplaceMakeTheLeadingSpace) {
  Characters file;
  file.normalizer = std::string(R"({"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "_"}, )") +
                    spaces_to_marks + "]}";
  EXPECT_EQ(file.encode("ab a"), (Ids{4, 3, 4}));
  EXPECT_EQ(file.encode(""), Ids());
}

// With listed merges, a character that is dropped leaves its neighbours next to each other, and they may merge.
TEST(TokenizerPipeline, MarksAroundADroppedCharacterMerge) {
  const auto tokenizer = Tokenizer::from_tokenizer_json(
      R"({"normalizer": null, "pre_tokenizer": null, "added_tokens": [], "decoder": {"type": "Sequence", "decoders":
          [{"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "}, {"type": "Fuse"}]}, "model": {"type": "BPE", "vocab": {"\u2581": 0, "a": 1, "\u2581\u2581": 2}, "merges": [["\u2581", "\u2581"]]}})");
  EXPECT_EQ(tokenizer->encode("\xE2\x96\x81x\xE2\x96\x81", SpecialTokens::parse), (Ids{2}));
  EXPECT_EQ(tokenizer->encode("\xE2\x96\x81\x61\xE2\x96\x81", SpecialTokens::parse), (Ids{0, 1, 0}));
}

TEST(TokenizerPipeline, ReplaceTakesExpressionsToo) {
  Characters file;
  file.normalizer = R"({"type": "Replace", "pattern": {"Regex": "x+"}, "content": "b"})";
  EXPECT_EQ(file.encode("axxxa"), (Ids{5, 2}));
}

TEST(TokenizerPipeline, MetaspacePutsOneMarkInFront) {
  Characters file;
  file.decoder = R"({"type": "Metaspace", "replacement": "_"})";
  file.added = R"([{"id": 7, "content": "<s>", "special": true}])";
  file.pre_tokenizer = R"({"type": "Metaspace", "replacement": "_", "prepend_scheme": "always"})";
  EXPECT_EQ(file.encode("a<s>a"), (Ids{4, 7, 4}));
  EXPECT_EQ(file.encode(" a"), (Ids{4})) << "there is one already";
  file.pre_tokenizer = R"({"type": "Metaspace", "replacement": "_", "prepend_scheme": "first", "split": false})";
  EXPECT_EQ(file.encode("a<s>a"), (Ids{4, 7, 2}));
  file.pre_tokenizer = R"({"type": "Metaspace", "replacement": "_", "prepend_scheme": "never"})";
  EXPECT_EQ(file.encode("a a"), (Ids{2, 4}));
}

TEST(TokenizerPipeline, UnknownCharactersFuseWhereTheFileSaysSo) {
  Characters file;
  EXPECT_EQ(file.encode("axyb"), (Ids{2, 0, 0, 3}));
  file.model_options += R"(, "fuse_unk": true)";
  EXPECT_EQ(file.encode("axyb"), (Ids{2, 0, 3}));
}

TEST(TokenizerPipeline, AWholeTokenMayWinOverItsMerges) {
  Characters file;
  EXPECT_EQ(file.encode("aab"), (Ids{2, 5})) << "ab merges before aa";
  file.model_options += R"(, "ignore_merges": true)";
  EXPECT_EQ(file.encode("aa"), (Ids{6}));
}

// A control token that may not be recognised does not hide a user-defined one with the same spelling.
TEST(TokenizerPipeline, OfAddedTokensSpelledAlikeTheFirstThatMayBeRecognisedCounts) {
  std::vector<AddedToken> tokens(3);
  for (uint32_t i = 0; i < 3; ++i) tokens[i] = {.id = i, .spelling = "ab", .special = i == 0};
  const AddedTokens added(tokens);
  const TextRange structure[] = {{0, 2}};
  EXPECT_EQ(added.find("abab", 0, structure)->token->id, 0u);
  EXPECT_EQ(added.find("abab", 2, structure)->token->id, 1u);
}

TEST(TokenizerPipeline, AddedTokensAreFoundInNormalizedTextWhereTheFileSaysSo) {
  Characters file;
  file.normalizer = R"({"type": "NFKC"})";
  file.added = R"([{"id": 7, "content": "fi!", "normalized": true}, {"id": 8, "content": "ab!", "normalized": false}])";
  EXPECT_EQ(file.encode("a\xEF\xAC\x81!"), (Ids{2, 7})) << "a ligature that NFKC takes apart";
  EXPECT_EQ(file.encode("\xEF\xBD\x81"
                        "b!"),
            (Ids{5, 0}))
      << "a wide a, normalized only after the search";
  EXPECT_EQ(file.build()->find_special("fi!"), 7u);
}

TEST(TokenizerPipeline, StrippingTakesAllOfUnicodesWhiteSpace) {
  Characters file;
  file.added = R"([{"id": 7, "content": "<m>", "lstrip": true, "rstrip": true, "special": true}])";
  EXPECT_EQ(file.encode("a\xC2\xA0\t<m> \xE3\x80\x80\n"
                        "b"),
            (Ids{2, 7, 3}));
}

TEST(TokenizerPipeline, DecodingFollowsTheDecoder) {
  Characters file;
  file.decoder = R"({"type": "Metaspace", "replacement": "_"})";
  EXPECT_EQ(file.build()->decode(Ids{4, 4, 1}), " a a ");
  EXPECT_EQ(file.build()->token_bytes(4), " a");
}

TEST(TokenizerPipeline, OneTokenizerServesSeveralThreads) {
  const auto tokenizer = Characters().build();
  std::string text;
  for (int i = 0; i < 2000; ++i) text += i % 3 == 0 ? "aab " : "ab";
  const Ids expected = tokenizer->encode(text, SpecialTokens::parse);
  std::vector<std::thread> threads;
  std::array<Ids, 4> found;
  for (Ids& ids : found) threads.emplace_back([&] { ids = tokenizer->encode(text, SpecialTokens::parse); });
  for (std::thread& thread : threads) thread.join();
  for (const Ids& ids : found) EXPECT_EQ(ids, expected);
}

TEST(TokenizerPipelineErrors, EachNamesWhatIsWrong) {
  const auto refused = [](const char* part, const auto& damage) {
    Characters file;
    damage(file);
    try {
      file.build();
      ADD_FAILURE() << "accepted; expected an error with: " << part;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::bad_input);
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
  };
  refused("\"Lowercase\"", [](Characters& f) { f.normalizer = R"({"type": "Lowercase"})"; });
  refused("\"WordPiece\"", [](Characters& f) { f.decoder = R"({"type": "WordPiece"})"; });
  refused("without Replace", [](Characters& f) { f.decoder = R"({"type": "Fuse"})"; });
  refused("Metaspace replacement \"~\"",
          [](Characters& f) { f.pre_tokenizer = R"({"type": "Metaspace", "replacement": "~"})"; });
  refused("\"sometimes\"", [](Characters& f) {
    f.pre_tokenizer = R"({"type": "Metaspace", "replacement": "_", "prepend_scheme": "sometimes"})";
  });
  refused("regular expression",
          [](Characters& f) { f.normalizer = R"({"type": "Replace", "pattern": {"Regex": "("}, "content": ""})"; });
  refused("\"Metaspace\"", [](Characters& f) {
    f.pre_tokenizer =
        R"({"type": "Sequence", "pretokenizers": [{"type": "Digits"}, {"type": "Metaspace", "replacement": "_"}]})";
  });
}

using Pieces = std::vector<std::string_view>;

Pieces split(const char* expression, PreTokenizer::Behavior behavior, std::string_view text, bool invert = false) {
  std::vector<PreTokenizer::Stage> stages;
  stages.push_back({Regex(expression), behavior, invert});
  return PreTokenizer(std::move(stages)).split(text);
}

// Hugging Face's own examples: "the-final--countdown" split at "-".
TEST(SplitBehavior, AsHuggingFaceShowsThem) {
  using enum PreTokenizer::Behavior;
  const char* text = "the-final--countdown";
  EXPECT_EQ(split("-", removed, text), (Pieces{"the", "final", "countdown"}));
  EXPECT_EQ(split("-", isolated, text), (Pieces{"the", "-", "final", "-", "-", "countdown"}));
  EXPECT_EQ(split("-", with_previous, text), (Pieces{"the-", "final-", "-", "countdown"}));
  EXPECT_EQ(split("-", with_next, text), (Pieces{"the", "-final", "-", "-countdown"}));
  EXPECT_EQ(split("-", contiguous, text), (Pieces{"the", "-", "final", "--", "countdown"}));
}

TEST(PreTokenizerNames, O200kCutsInFrontOfCapitalsAndKeepsContractions) {
  EXPECT_EQ(PreTokenizer::named("gpt-4o").split("helloWorld isn't 1234/x"),
            (Pieces{"hello", "World", " isn't", " ", "123", "4", "/x"}));
}

TEST(PreTokenizerNames, EachCutsRepeatedCharactersInLinearTime) {
  for (const char* name :
       {"gpt-2", "smollm", "qwen2", "qwen35", "llama-bpe", "gpt-4o", "tekken", "deepseek-v3", "falcon"}) {
    for (const char* unit : {"a", "A", " ", "\n", "\r", " \n", "'", "1", "aA", "\xE4\xBD\xA0", "\xCC\x81", "! "}) {
      std::string text;
      for (int i = 0; i < 100'000; ++i) text += unit;
      const test::ProcessorClock clock;
      const auto pieces = PreTokenizer::named(name).split(text);
      EXPECT_FALSE(pieces.empty());
      EXPECT_LT(clock.seconds(), 10.0) << name << ", \"" << unit << '"';  // a quadratic algorithm would take minutes
    }
  }
}

}  // namespace
}  // namespace canopy
