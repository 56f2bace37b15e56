// Which pairs of target and drafter are refused, and the warnings about those that are not.

#include "engine/format/draft_file.h"

#include <gtest/gtest.h>

#include <functional>
#include <ostream>

#include "tests/base/expect_error.h"
#include "tests/base/temp_folder.h"
#include "tests/format/golden_path.h"
#include "tests/format/tiny_drafter.h"
#include "tests/format/tiny_model.h"

namespace canopy {
namespace {

using test::golden;

/// A pair that fits and has nothing unusual.
struct Pair {
  ModelConfig target;
  DrafterConfig drafter;

  Pair() {
    target.name = "big";
    target.layers = 4;
    target.hidden = 8;
    target.vocab = 10;
    target.max_context = 64;
    target.rope_theta = 10000;
    target.eos = {8};
    ModelConfig& small = drafter.transformer;
    small.name = "small";
    small.layers = 1;
    small.hidden = 8;
    small.heads = 2;
    small.kv_heads = 1;
    small.head_dim = 4;
    small.ffn = 16;
    small.max_context = 64;
    small.rms_eps = 1e-5f;
    small.rope_theta = 10000;
    drafter.attention.resize(1);
    drafter.block_size = 4;
    drafter.mask_token = 9;
    drafter.aux_layers = {0, 3};
    drafter.target_layers = 4;
    drafter.vocab = 10;
  }
};

TEST(DrafterPair, NothingIsSaidOfAUsualPair) {
  const Pair pair;
  EXPECT_EQ(check_pair(pair.target, pair.drafter), std::vector<std::string>());
}

struct PairCase {
  const char* name;
  const char* message;
  std::function<void(Pair&)> change;
};

void PrintTo(const PairCase& c, std::ostream* out) {
  *out << c.name;
}

const PairCase refused[] = {
    {"Hidden", "The drafter 'small' does not fit the model 'big': its hidden size is 8, the model's 16.",
     [](Pair& p) { p.target.hidden = 16; }},
    {"Layers", "it was made for a model of 4 layers; this one has 5.", [](Pair& p) { p.target.layers = 5; }},
    {"TapOutside", "it reads layer 3; the model has the layers 0 to 2.",
     [](Pair& p) {
       p.target.layers = 3;
       p.drafter.target_layers = 0;
     }},
    {"Vocabulary", "it was made for a vocabulary of 10 tokens; the model has 11.",
     [](Pair& p) { p.target.vocab = 11; }},
    {"MaskOutside", "its mask token is 9, outside the model's vocabulary of 9 tokens.",
     [](Pair& p) {
       p.target.vocab = 9;
       p.drafter.vocab = 0;
     }},
    {"BlockZero", "The drafter's block size is 0; 2 to 64 is allowed", [](Pair& p) { p.drafter.block_size = 0; }},
    {"BlockOne", "The drafter's block size is 1; 2 to 64 is allowed", [](Pair& p) { p.drafter.block_size = 1; }},
    {"BlockHuge", "The drafter's block size is 65; 2 to 64 is allowed", [](Pair& p) { p.drafter.block_size = 65; }},
    {"NoTaps", "The drafter names 0 target layers (taps)", [](Pair& p) { p.drafter.aux_layers.clear(); }},
};

class DrafterPairRefused : public testing::TestWithParam<PairCase> {};

TEST_P(DrafterPairRefused, SaysWhy) {
  Pair pair;
  GetParam().change(pair);
  test::expect_error(GetParam().message, [&] { check_pair(pair.target, pair.drafter); });
}

INSTANTIATE_TEST_SUITE_P(Cases, DrafterPairRefused, testing::ValuesIn(refused),
                         [](const auto& info) { return std::string(info.param.name); });

const PairCase unusual[] = {
    {"VocabularyUnknown", "does not say which vocabulary it was made for", [](Pair& p) { p.drafter.vocab = 0; }},
    {"Theta", "rope theta is 10000, the model's 1e+06; they are equal in most pairs.",
     [](Pair& p) { p.target.rope_theta = 1e6; }},
    {"Context", "made for a context of 64 positions, the model for 128", [](Pair& p) { p.target.max_context = 128; }},
    {"Order", "in another than ascending order",
     [](Pair& p) {
       p.drafter.aux_layers = {3, 0};
     }},
    {"MaskEnds", "mask token, 9, is one that ends the model's replies.", [](Pair& p) { p.target.eos = {9}; }},
    {"OwnVocabulary", "brings an embedding or an output head of its own",
     [](Pair& p) { p.drafter.brings_vocabulary = true; }},
};

class DrafterPairUnusual : public testing::TestWithParam<PairCase> {};

TEST_P(DrafterPairUnusual, IsSaid) {
  Pair pair;
  GetParam().change(pair);
  const std::vector<std::string> warnings = check_pair(pair.target, pair.drafter);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find(GetParam().message), std::string::npos) << warnings[0];
}

INSTANTIATE_TEST_SUITE_P(Cases, DrafterPairUnusual, testing::ValuesIn(unusual),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(DrafterPair, TheGoldenPairFitsInEveryFormat) {
  for (const char* target : {"tiny-qwen3", "tiny-qwen3-f16.gguf"}) {
    for (const char* drafter : {"tiny-qwen3-dflash-b8", "tiny-qwen3-dflash-b8-f16.gguf"}) {
      SCOPED_TRACE(std::string(target) + " with " + drafter);
      EXPECT_EQ(check_pair(ModelFile::open(golden(target)), DrafterFile::open(golden(drafter))),
                std::vector<std::string>());
    }
  }
  test::expect_error("does not fit the model 'tiny-llama3': its hidden size is 96, the model's 64.", [] {
    check_pair(ModelFile::open(golden("tiny-llama3")), DrafterFile::open(golden("tiny-qwen3-dflash-b8")));
  });
}

// ---- from paths -----------------------------------------------------------------------------------------------------

TEST(DescribePair, SaysFromPathsWhatCheckPairSays) {
  for (const char* target : {"tiny-qwen3", "tiny-qwen3-f16.gguf"}) {
    for (const char* drafter : {"tiny-qwen3-dflash-b8", "tiny-qwen3-dflash-b8-f16.gguf"}) {
      const PairReport report = describe_pair(golden(target), golden(drafter));
      EXPECT_TRUE(report.fits) << target << ", " << drafter << ": " << report.reason;
      EXPECT_EQ(report.reason, "");
      EXPECT_EQ(report.warnings, check_pair(ModelFile::open(golden(target)), DrafterFile::open(golden(drafter))));
    }
  }
}

TEST(DescribePair, GivesTheReasonInsteadOfThrowing) {
  const test::TempFolder folder;
  const auto no_model = folder.write("broken.gguf", "GGUF");
  struct Wrong {
    std::filesystem::path target, drafter;
    const char* reason;
  };
  for (const Wrong& wrong : {
           Wrong{golden("tiny-llama3"), golden("tiny-qwen3-dflash-b8"), "does not fit the model"},
           Wrong{golden("tiny-qwen3"), golden("tiny-qwen3"), "tiny-qwen3"},
           Wrong{golden("tiny-qwen3-dflash-b8"), golden("tiny-qwen3-dflash-b8"), "tiny-qwen3-dflash-b8"},
           Wrong{no_model, golden("tiny-qwen3-dflash-b8"), "broken.gguf"},
           Wrong{golden("tiny-qwen3"), folder.path() / "missing.gguf", "missing.gguf"},
       }) {
    const PairReport report = describe_pair(wrong.target, wrong.drafter);
    EXPECT_FALSE(report.fits) << wrong.reason;
    EXPECT_NE(report.reason.find(wrong.reason), std::string::npos) << report.reason;
    EXPECT_TRUE(report.warnings.empty());
  }
}

// ---- tokenizers -----------------------------------------------------------------------------------------------------

TokenizerSource gguf_tokenizer(const std::vector<std::string_view>& tokens) {
  TokenizerSource source;
  source.kind = TokenizerSource::Kind::gguf;
  source.tokens = tokens;
  return source;
}

TokenizerSource hugging_face_tokenizer(const std::string& json) {
  TokenizerSource source;
  source.kind = TokenizerSource::Kind::hugging_face;
  source.tokenizer_json = json;
  return source;
}

TEST(TokenizerDifference, ComparesTokensOfBothFormats) {
  const TokenizerSource target = gguf_tokenizer({"a", "b", "<s>"});
  EXPECT_EQ(tokenizer_difference(target, gguf_tokenizer({"a", "b", "<s>"})), std::nullopt);
  const std::string same = R"({"model":{"vocab":{"a":0,"b":1}},"added_tokens":[{"id":2,"content":"<s>"}]})";
  EXPECT_EQ(tokenizer_difference(target, hugging_face_tokenizer(same)), std::nullopt);
  const std::string other = R"({"model":{"vocab":{"a":0,"x":1}},"added_tokens":[{"id":2,"content":"<s>"}]})";
  EXPECT_EQ(tokenizer_difference(target, hugging_face_tokenizer(other)),
            "The drafter was made for another tokenizer: of 3 tokens, 1 differs (token 1 is 'x' to it and 'b' to the "
            "model).");
  EXPECT_EQ(tokenizer_difference(hugging_face_tokenizer(same), gguf_tokenizer({"b", "a", "<s>"})),
            "The drafter was made for another tokenizer: of 3 tokens, 2 differ (token 0 is 'b' to it and 'a' to the "
            "model).");
}

TEST(TokenizerDifference, LeavesOutWhatCannotBeCompared) {
  const TokenizerSource target = gguf_tokenizer({"a", "b"});
  EXPECT_EQ(tokenizer_difference(target, TokenizerSource()), std::nullopt);
  for (const char* text : {"", "{", "[]", "{}", R"({"model":[]})", R"({"model":{"vocab":[["a",0]]}})",
                           R"({"model":{"vocab":{"a":-1,"c":"x"}},"added_tokens":{}})",
                           R"({"added_tokens":[1,{"id":-1},{"id":0},{"id":1,"content":2}]})"}) {
    EXPECT_EQ(tokenizer_difference(target, hugging_face_tokenizer(text)), std::nullopt) << text;
  }
  TokenizerSource padded = gguf_tokenizer({"a", "[PAD1]"});
  padded.types = {1, 5};
  EXPECT_EQ(tokenizer_difference(target, padded), std::nullopt);
}

TEST(DraftModelPair, VocabulariesMayDifferInPaddingAndSpecialTokensOnly) {
  test::TempFolder folder;
  // Bytes of the same length in the place of others.
  const auto write = [&](const char* name, std::string_view from = "", std::string_view to = "") {
    std::string bytes = test::tiny_gguf().build();
    if (!from.empty()) bytes.replace(bytes.find(from), from.size(), to);
    return folder.write(name, bytes);
  };
  const auto target = write("target.gguf");
  const PairReport fits = describe_pair(target, write("fits.gguf"));
  EXPECT_TRUE(fits.fits) << fits.reason;
  ASSERT_EQ(fits.warnings.size(), 1u);
  EXPECT_NE(fits.warnings[0].find("not smaller than the model"), std::string::npos);
  EXPECT_TRUE(describe_pair(target, write("special.gguf", "<|im_end|>", "<|in_end|>")).fits);
  const std::string_view length("context_length\4\0\0\0\x40", 19), shorter_length("context_length\4\0\0\0\x20", 19);
  const PairReport shorter = describe_pair(target, write("shorter.gguf", length, shorter_length));
  EXPECT_TRUE(shorter.fits) << shorter.reason;
  EXPECT_EQ(shorter.warnings.size(), 2u);
  const std::string_view h("\1\0\0\0\0\0\0\0h", 9), x("\1\0\0\0\0\0\0\0x", 9);
  const PairReport other = describe_pair(target, write("other.gguf", h, x));
  EXPECT_FALSE(other.fits);
  EXPECT_EQ(
      other.reason,
      "other.gguf: It has another vocabulary than the model, so its guesses would be other words: of 10 tokens, 1 "
      "differs (token 7 is 'x' to it and 'h' to the model).");
  const PairReport itself = describe_pair(target, target);
  EXPECT_FALSE(itself.fits);
  EXPECT_NE(itself.reason.find("It is the model itself"), std::string::npos);
}

}  // namespace
}  // namespace canopy
