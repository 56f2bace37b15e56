// Vocabularies of characters and scores, as in Llama 2's GGUF files, small enough to follow by hand.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <functional>
#include <limits>
#include <random>

#include "engine/base/error.h"
#include "engine/text/chat_template.h"
#include "engine/text/tokenizer.h"
#include "tests/base/processor_time.h"

namespace canopy {
namespace {

using Ids = std::vector<uint32_t>;

// <unk> <s> </s>, the 256 bytes from id 3 on, then characters and merged tokens.
struct Unigram {
  std::vector<std::string> tokens = {"<unk>", "<s>", "</s>"};
  VocabularyData data;

  Unigram() {
    data.model = "llama";
    data.types = {2, 3, 3};
    data.scores = {0, 0, 0};
    for (int byte = 0; byte < 256; ++byte) {
      char text[8];
      std::snprintf(text, sizeof text, "<0x%02X>", byte);
      add(text, 0, TokenType::byte);
    }
  }

  uint32_t add(std::string token, float score, TokenType type = TokenType::normal) {
    tokens.push_back(std::move(token));
    data.types.push_back(static_cast<int32_t>(type));
    data.scores.push_back(score);
    return static_cast<uint32_t>(tokens.size() - 1);
  }

  std::unique_ptr<Tokenizer> build() {
    data.tokens.assign(tokens.begin(), tokens.end());
    return Tokenizer::from_vocabulary(data);
  }
};

constexpr uint32_t unknown = 0, begin_of_text = 1, first_byte = 3;

struct SmallUnigram : Unigram {
  uint32_t mark = add("\xE2\x96\x81", -100);
  uint32_t a = add("a", -101);
  uint32_t b = add("b", -102);
  uint32_t c = add("c", -103);
  uint32_t bc = add("bc", -1);
  uint32_t ab = add("ab", -2);
  uint32_t mark_a = add("\xE2\x96\x81\x61", -3);
  uint32_t marks = add("\xE2\x96\x81\xE2\x96\x81", -4);
  uint32_t abc = add("abc", -5);
};

// Phi-3's GGUF files: white space behind a control token belongs to it, as in the folder they were made of.
TEST(SentencePieces, ControlTokensMayTakeTheSpaceBehindThem) {
  Unigram phi;
  const uint32_t mark = phi.add("\xE2\x96\x81", -1), a = phi.add("a", -2),
                 mark_a = phi.add(
                     "\xE2\x96\x81"
                     "a",
                     -3);
  const uint32_t user = phi.add("<|user|>", 0, TokenType::control);
  const uint32_t end = phi.add("<|endoftext|>", 0, TokenType::control);
  const uint32_t newline = first_byte + '\n';
  const auto encode = [&](std::string_view text) { return phi.build()->encode(text, SpecialTokens::parse); };
  EXPECT_EQ(encode("<|user|>\na"), (Ids{user, mark, newline, a}));
  phi.data.control_strips_right = true;
  EXPECT_EQ(encode("<|user|>\na<|user|>\n <|user|>"), (Ids{user, mark_a, user, user}));
  EXPECT_EQ(encode("<|endoftext|>\n"), (Ids{end, mark, newline}));
  EXPECT_EQ(encode("</s>\na"), (Ids{2, mark_a}));
  EXPECT_EQ(encode("<s>\n"), (Ids{begin_of_text, mark, newline}));
}

TEST(SentencePieces, TheHighestScoreMergesFirst) {
  SmallUnigram v;
  const auto tokenizer = v.build();
  EXPECT_EQ(tokenizer->encode("abc", SpecialTokens::parse), (Ids{v.mark_a, v.bc}));
  EXPECT_EQ(tokenizer->encode("abab", SpecialTokens::parse), (Ids{v.mark, v.ab, v.ab}));
}

TEST(SentencePieces, TextBehindASpecialTokenHasItsOwnSpaceToo) {
  SmallUnigram v;
  const auto tokenizer = v.build();
  EXPECT_EQ(tokenizer->encode("<s>a</s>a", SpecialTokens::parse), (Ids{begin_of_text, v.mark_a, 2, v.mark_a}));
  EXPECT_EQ(tokenizer->encode("", SpecialTokens::parse), Ids());
  v.data.add_space_prefix = false;
  EXPECT_EQ(v.build()->encode("a a", SpecialTokens::parse), (Ids{v.a, v.mark_a}));
}

TEST(SentencePieces, RunsOfSpacesMergeAndWordsDoNotJoin) {
  SmallUnigram v;
  const auto tokenizer = v.build();
  EXPECT_EQ(tokenizer->encode("  a", SpecialTokens::parse), (Ids{v.marks, v.mark_a}));
  EXPECT_EQ(tokenizer->encode("b a", SpecialTokens::parse), (Ids{v.mark, v.b, v.mark_a}));
}

TEST(SentencePieces, AMergeAcrossWordsIsSeen) {
  SmallUnigram v;
  const uint32_t across = v.add("b\xE2\x96\x81", 0);
  EXPECT_EQ(v.build()->encode("b a", SpecialTokens::parse), (Ids{v.mark, across, v.a}));
}

TEST(SentencePieces, OtherCharactersBecomeBytes) {
  SmallUnigram v;
  const auto tokenizer = v.build();
  EXPECT_EQ(tokenizer->encode("\n\xC3\xA9", SpecialTokens::parse),
            (Ids{v.mark, first_byte + '\n', first_byte + 0xC3, first_byte + 0xA9}));
  EXPECT_EQ(tokenizer->encode("a\xFF", SpecialTokens::parse), (Ids{v.mark_a, first_byte + 0xFF}));
  EXPECT_EQ(tokenizer->encode("<0x41>", SpecialTokens::parse).size(), 7u) << "a byte token cannot be spelled";
}

TEST(SentencePieces, WithoutByteTokensOneUnknownStandsForARun) {
  SmallUnigram v;
  for (uint32_t id = first_byte; id < first_byte + 256; ++id) v.data.types[id] = 5;
  EXPECT_EQ(v.build()->encode("axyzb", SpecialTokens::parse), (Ids{v.mark_a, unknown, v.b}));
}

TEST(SentencePieces, ACharacterWithoutATokenKeepsItsNeighboursApart) {
  SmallUnigram v;
  v.tokens[0] = "<none>";
  for (uint32_t id = first_byte; id < first_byte + 256; ++id) v.data.types[id] = 5;
  const auto dropping = v.build();
  EXPECT_EQ(dropping->encode("axb", SpecialTokens::parse), (Ids{v.mark_a, v.b}));
  EXPECT_EQ(dropping->encode(" x a", SpecialTokens::parse), (Ids{v.marks, v.mark_a}));
  EXPECT_EQ(dropping->encode("x x", SpecialTokens::parse), (Ids{v.mark, v.mark}));
  v.data.unknown = v.a;  // x gets the id of "a", but must not merge as "a" does
  EXPECT_EQ(v.build()->encode("xbaab", SpecialTokens::parse), (Ids{v.mark, v.a, v.b, v.a, v.ab}));
}

// A reply's text lacks the space before its first word. A template writes that space; a reply's own tokens contain it.
TEST(SentencePieces, AReplyBringsItsOwnLeadingSpace) {
  SmallUnigram v;
  const auto tokenizer = v.build();
  const auto form = ChatTemplate::create(
      "{% for m in messages %}{% if m.role == 'user' %}<s>{{ m.content }}</s>{% else %} {{ m.content }}\n{% endif %}"
      "{% endfor %}",
      *tokenizer);
  ASSERT_EQ(form->warning(), "");
  ChatTurn turns[] = {{"user", "c"}, {"assistant", "abc", {{v.mark_a, v.b, v.c}, {}, tokenizer->identity()}}};
  EXPECT_EQ(form->render_to_ids(turns, *tokenizer),
            (Ids{begin_of_text, v.mark, v.c, 2, v.mark_a, v.b, v.c, first_byte + '\n'}))
      << "no space is added behind the reply, for the text goes on there";
  turns[1].tokens.ids = {v.mark_a, v.bc};
  EXPECT_EQ(form->render_to_ids(turns, *tokenizer),
            (Ids{begin_of_text, v.mark, v.c, 2, v.mark_a, v.bc, first_byte + '\n'}));
}

TEST(SentencePieces, DecodingGivesTheTextBack) {
  SmallUnigram v;
  const auto tokenizer = v.build();
  for (const std::string text : {"abc", " a", "a  b", "\xE4\xBD\xA0 \xF0\x9F\x98\x80", "a\n\nb "}) {
    EXPECT_EQ(tokenizer->decode(tokenizer->encode(text, SpecialTokens::parse)), text);
  }
  EXPECT_EQ(tokenizer->token_bytes(v.mark_a), " a");
  EXPECT_EQ(tokenizer->token_bytes(first_byte + 10), "\n");
  EXPECT_TRUE(tokenizer->drops_leading_space());
}

TEST(SentencePieces, WhatAFileLeavesOutIsAsInLlama2) {
  const auto tokenizer = SmallUnigram().build();
  EXPECT_EQ(tokenizer->bos(), 1u);
  EXPECT_EQ(tokenizer->eos(), 2u);
  EXPECT_TRUE(tokenizer->adds_bos());
}

// The reference: SentencePiece's rule in its simplest form, in quadratic time. Spaces are U+2581 already.
Ids slow_pieces(const Unigram& v, const std::vector<std::string>& characters) {
  std::vector<std::string> symbols = characters;
  const auto id_of = [&](const std::string& text) -> std::optional<uint32_t> {
    for (uint32_t id = first_byte + 256; id < v.tokens.size(); ++id) {
      if (v.tokens[id] == text) return id;
    }
    return std::nullopt;
  };
  for (;;) {
    size_t best = symbols.size();
    float score = -std::numeric_limits<float>::infinity();
    for (size_t i = 0; i + 1 < symbols.size(); ++i) {
      const auto id = id_of(symbols[i] + symbols[i + 1]);
      if (id && v.data.scores[*id] > score) score = v.data.scores[*id], best = i;
    }
    if (best == symbols.size()) break;
    symbols[best] += symbols[best + 1];
    symbols.erase(symbols.begin() + static_cast<ptrdiff_t>(best) + 1);
  }
  Ids ids;
  for (const std::string& symbol : symbols) ids.push_back(*id_of(symbol));
  return ids;
}

TEST(SentencePieces, AgreesWithThePlainAlgorithm) {
  SmallUnigram v;
  const auto tokenizer = v.build();
  std::mt19937 random(4);
  for (int round = 0; round < 400; ++round) {
    std::vector<std::string> characters = {"\xE2\x96\x81"};
    std::string text;
    for (size_t n = 1 + random() % 120; n > 0; --n) {
      const char c = " abc"[random() % 4];
      text += c;
      characters.push_back(c == ' ' ? "\xE2\x96\x81" : std::string(1, c));
    }
    ASSERT_EQ(tokenizer->encode(text, SpecialTokens::parse), slow_pieces(v, characters)) << text;
  }
}

TEST(SentencePieces, AMillionCharactersTakeLinearTime) {
  const auto tokenizer = SmallUnigram().build();
  for (const char* unit : {"a", " ", "ab", "\xC3\xA9", "\xFF"}) {
    std::string text;
    for (int i = 0; i < 1'000'000; ++i) text += unit;
    const test::ProcessorClock clock;
    EXPECT_FALSE(tokenizer->encode(text, SpecialTokens::parse).empty());
    EXPECT_LT(clock.seconds(), 30.0) << unit;  // a quadratic algorithm would take hours
  }
}

TEST(SentencePiecesErrors, EachNamesWhatIsWrong) {
  const auto refused = [](const char* part, const std::function<void(SmallUnigram&)>& damage) {
    SmallUnigram v;
    damage(v);
    try {
      v.build();
      ADD_FAILURE() << "accepted; expected an error with: " << part;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::bad_input);
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
  };
  refused("268 tokens but 0 scores", [](SmallUnigram& v) { v.data.scores.clear(); });
  refused("268 tokens but 267 scores", [](SmallUnigram& v) { v.data.scores.pop_back(); });
  refused("score of token 260 is not a number", [](SmallUnigram& v) { v.data.scores[260] = std::nanf(""); });
  refused("Token 3 is of the type byte", [](SmallUnigram& v) { v.tokens[3] = "<0x0G>"; });
  refused("Token 3 is of the type byte", [](SmallUnigram& v) { v.tokens[3] = ""; });
  refused("Token 268 is 2000 bytes long", [](SmallUnigram& v) { v.add(std::string(2000, 'a'), -9); });
  refused("unknown token has the id 999", [](SmallUnigram& v) { v.data.unknown = 999; });
}

}  // namespace
}  // namespace canopy
