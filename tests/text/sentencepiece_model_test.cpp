// SentencePiece models made by the library's own trainer; the engine's encoder for GGUF vocabularies must agree with
// it.

#include <gtest/gtest.h>
#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

#include <algorithm>
#include <random>
#include <unordered_map>
#include <utility>

#include "engine/base/error.h"
#include "engine/text/tokenizer.h"
#include "tests/base/expect_error.h"
#include "tests/base/processor_time.h"

namespace canopy {
namespace {

using Ids = std::vector<uint32_t>;
using Settings = std::unordered_map<std::string, std::string>;

class Sentences final : public sentencepiece::SentenceIterator {
 public:
  bool done() const override { return next_ >= lines_.size(); }
  void Next() override { ++next_; }
  const std::string& value() const override { return lines_[next_]; }
  decltype(std::declval<const sentencepiece::SentenceIterator&>().status()) status() const override { return {}; }

 private:
  std::vector<std::string> lines_ = {
      "A tree of drafts is checked in one pass.",
      "The draft is short, the check is wide, and the text is the same.",
      "for (int i = 0; i < n; ++i) sum += values[i];",
      "return the same text    for the same tree",
      "caf\xC3\xA9 na\xC3\xAFve \xE4\xBD\xA0\xE5\xA5\xBD",
  };
  size_t next_ = 0;
};

std::string trained(const std::string& type, const std::string& normalization = "identity") {
  const Settings settings = {{"model_type", type},
                             {"vocab_size", "340"},
                             {"byte_fallback", "true"},
                             {"normalization_rule_name", normalization},
                             {"remove_extra_whitespaces", "false"},
                             {"allow_whitespace_only_pieces", "true"},
                             {"minloglevel", "3"},
                             {"hard_vocab_limit", "false"}};
  Sentences sentences;
  std::string model;
  const auto status = sentencepiece::SentencePieceTrainer::Train(settings, &sentences, &model);
  EXPECT_TRUE(status.ok()) << status.ToString();
  return model;
}

TEST(SentencePieceModel, TextComesBack) {
  for (const char* type : {"bpe", "unigram"}) {
    const auto tokenizer = Tokenizer::from_sentencepiece_model(trained(type));
    for (const std::string text : {"the same tree", "  two  spaces ", "caf\xC3\xA9 \xF0\x9F\x98\x80\n\n", ""}) {
      EXPECT_EQ(tokenizer->decode(tokenizer->encode(text, SpecialTokens::parse)), text) << type;
    }
    EXPECT_TRUE(tokenizer->adds_bos());
    EXPECT_EQ(tokenizer->bos(), 1u);
    EXPECT_EQ(tokenizer->eos(), 2u);
  }
}

TEST(SentencePieceModel, ControlTokensAreParsedOnlyWhereAllowed) {
  const auto tokenizer = Tokenizer::from_sentencepiece_model(trained("bpe"));
  EXPECT_EQ(tokenizer->encode("</s>", SpecialTokens::parse), (Ids{2}));
  const Ids as_text = tokenizer->encode("</s>", SpecialTokens::as_text);
  EXPECT_EQ(std::count(as_text.begin(), as_text.end(), 2u), 0);
  EXPECT_EQ(tokenizer->decode(as_text), "</s>");
}

TEST(SentencePieceModel, TheConfigAddsTokens) {
  const auto tokenizer = Tokenizer::from_sentencepiece_model(
      trained("bpe"), R"({"eos_token": "<|im_end|>", "add_bos_token": false, "chat_template": "T",
                          "added_tokens_decoder": {"400": {"content": "<|im_end|>", "special": true}}})");
  EXPECT_EQ(tokenizer->vocab_size(), 401u);
  EXPECT_EQ(tokenizer->eos(), 400u);
  EXPECT_FALSE(tokenizer->adds_bos());
  EXPECT_EQ(tokenizer->chat_template(), "T");
  EXPECT_EQ(tokenizer->encode("<|im_end|>", SpecialTokens::parse), (Ids{400}));
}

// The same vocabulary in the form of a GGUF file.
TEST(SentencePieceModel, OurEncoderAgreesWithTheLibrary) {
  const std::string model = trained("bpe");
  sentencepiece::SentencePieceProcessor processor;
  ASSERT_TRUE(processor.LoadFromSerializedProto(model).ok());
  VocabularyData data;
  data.model = "llama";
  for (int id = 0; id < processor.GetPieceSize(); ++id) {
    data.tokens.push_back(processor.IdToPiece(id));
    data.scores.push_back(processor.GetScore(id));
    data.types.push_back(processor.IsUnknown(id) ? 2 : processor.IsControl(id) ? 3 : processor.IsByte(id) ? 6 : 1);
  }
  const auto ours = Tokenizer::from_vocabulary(data);
  const auto theirs = Tokenizer::from_sentencepiece_model(model);
  const char* words[] = {"the",    "tree", " ", "  ", "same", "\n", "caf\xC3\xA9", "x", "\xF0\x9F\x98\x80",
                         "checks", "(i)",  "0"};
  std::mt19937 random(5);
  for (int round = 0; round < 500; ++round) {
    std::string text;
    for (size_t n = random() % 30; n > 0; --n) text += words[random() % std::size(words)];
    ASSERT_EQ(ours->encode(text, SpecialTokens::parse), theirs->encode(text, SpecialTokens::parse)) << text;
  }
}

TEST(SentencePieceModel, RepeatedCharactersTakeLinearTime) {
  const auto tokenizer = Tokenizer::from_sentencepiece_model(trained("bpe"));
  for (const char* unit : {"a", " ", "\xFF"}) {
    std::string text;
    for (int i = 0; i < 200'000; ++i) text += unit;
    const test::ProcessorClock clock;
    EXPECT_FALSE(tokenizer->encode(text, SpecialTokens::parse).empty());
    EXPECT_LT(clock.seconds(), 30.0) << unit;  // a quadratic algorithm would take hours
  }
}

TEST(SentencePieceModelErrors, DamagedModelsAreRefused) {
  const std::string model = trained("bpe");
  for (const std::string& damaged : {std::string(), std::string("no model"), model.substr(0, model.size() / 2)}) {
    try {
      Tokenizer::from_sentencepiece_model(damaged);
      ADD_FAILURE() << "accepted " << damaged.size() << " bytes";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("tokenizer.model"), std::string::npos) << error.what();
    }
  }
}

TEST(SentencePieceModel, ACompiledNormalizerIsFollowed) {
  for (const char* rules : {"nmt_nfkc", "nfkc", "nmt_nfkc_cf", "nfkc_cf"}) {
    const auto tokenizer = Tokenizer::from_sentencepiece_model(trained("bpe", rules));
    EXPECT_EQ(tokenizer->encode("\uFF34\uFF52\uFF45\uFF45 \uFB01ve", SpecialTokens::parse),
              tokenizer->encode("Tree five", SpecialTokens::parse))
        << rules;
  }
}

// The library does not check the table's offsets: with one flipped bit it ended the process.
TEST(SentencePieceModelErrors, ADamagedTableIsRefusedBeforeTheLibrarySeesIt) {
  const std::string model = trained("bpe", "nmt_nfkc");
  const size_t table = model.rfind("nmt_nfkc") + 12;  // the name, then the table's tag and length
  size_t refused = 0;
  for (size_t at = table; at + 4 < model.size(); at += 997) {
    std::string damaged = model;
    for (size_t i = 0; i < 3; ++i) damaged[at + i] = static_cast<char>(damaged[at + i] ^ 0x55);
    try {
      (void)Tokenizer::from_sentencepiece_model(damaged)->encode("\uFF34\uFF52 tree\u3000\u00E9", SpecialTokens::parse);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::bad_input);
      ++refused;
    }
  }
  EXPECT_GT(refused, 50u);
}

// The library skips a group, which no such message has, and goes on behind it: with a table that nobody looked at.
TEST(SentencePieceModelErrors, ATableBehindAGroupIsRefused) {
  std::string model = trained("bpe", "nmt_nfkc");
  const size_t spec = model.rfind("nmt_nfkc") - 2;  // its first field is the name
  ASSERT_EQ(model[spec - 4], 0x1A) << "a message, its length in three bytes";
  uint32_t length = 0;
  for (size_t i = 0; i < 3; ++i) length |= (static_cast<uint32_t>(model[spec - 3 + i]) & 0x7F) << (7 * i);
  length += 2;
  for (size_t i = 0; i < 3; ++i)
    model[spec - 3 + i] = static_cast<char>((length >> (7 * i) & 0x7F) | (i < 2 ? 0x80 : 0));
  model.insert(spec, "\x7B\x7C");
  test::expect_error("its normalizer does not end with a whole field",
                     [&] { Tokenizer::from_sentencepiece_model(model); });
}

TEST(SentencePieceModel, WhereAFolderIsNotLegacyOnlyATextHasASpaceOfItsOwn) {
  const std::string model = trained("bpe");
  const auto legacy = Tokenizer::from_sentencepiece_model(model);
  const auto tokenizer = Tokenizer::from_sentencepiece_model(model, R"({"legacy": false})");
  EXPECT_EQ(tokenizer->encode("the tree", SpecialTokens::parse), legacy->encode("the tree", SpecialTokens::parse));
  EXPECT_EQ(tokenizer->decode(tokenizer->encode("</s>the", SpecialTokens::parse), false), "</s>the");
  EXPECT_EQ(legacy->decode(legacy->encode("</s>the", SpecialTokens::parse), false), "</s> the");
  EXPECT_EQ(tokenizer->decode(tokenizer->encode("  the", SpecialTokens::parse)), "  the");
  EXPECT_FALSE(legacy->can_go_on());
  EXPECT_TRUE(tokenizer->can_go_on());
  Ids ids = tokenizer->encode("the", SpecialTokens::parse);
  const TextSpan rest{" tree", SpecialTokens::as_text};
  const Ids more = tokenizer->encode({&rest, 1}, TextPlace::inside);
  ids.insert(ids.end(), more.begin(), more.end());
  EXPECT_EQ(tokenizer->decode(ids), "the tree");
  const auto bare = Tokenizer::from_sentencepiece_model(model, R"({"legacy": false, "add_prefix_space": false})");
  EXPECT_FALSE(bare->drops_leading_space());
  EXPECT_EQ(bare->decode(bare->encode("the", SpecialTokens::parse)), "the");
}

TEST(SentencePieceModelErrors, AFlippedBitIsRefusedOrHarmless) {
  const std::string model = trained("bpe");
  for (size_t bit = 0; bit < model.size() * 8; bit += 61) {
    std::string damaged = model;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    try {
      (void)Tokenizer::from_sentencepiece_model(damaged)->encode("the same\ntree", SpecialTokens::parse);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::bad_input);
    }
  }
}

}  // namespace
}  // namespace canopy
