// The tokenizer with a small vocabulary whose merges can be followed by hand.

#include "engine/text/tokenizer.h"
#include "engine/text/chat_turn.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>

#include "engine/base/error.h"
#include "engine/text/unicode.h"
#include "engine/text/vocabulary.h"
#include "tests/base/processor_time.h"
#include "tests/text/golden_text.h"

namespace canopy {
namespace {

using Ids = std::vector<uint32_t>;

// All 256 bytes (ids 0 to 255 are the bytes themselves), then some merged tokens, then added ones.
struct Small {
  std::vector<std::string> tokens;
  VocabularyData data;

  explicit Small(std::vector<std::string_view> merged, std::vector<std::string_view> merges) {
    for (int byte = 0; byte < 256; ++byte) {
      tokens.emplace_back(byte_level_character(static_cast<unsigned char>(byte)));
    }
    tokens.insert(tokens.end(), merged.begin(), merged.end());
    data.types.assign(tokens.size(), static_cast<int32_t>(TokenType::normal));
    data.model = "gpt2";
    data.pre_tokenizer = "gpt-2";
    data.merges = std::move(merges);
  }

  uint32_t add(std::string token, TokenType type) {
    tokens.push_back(std::move(token));
    data.types.push_back(static_cast<int32_t>(type));
    return static_cast<uint32_t>(tokens.size() - 1);
  }

  std::unique_ptr<Tokenizer> build() {
    data.tokens.assign(tokens.begin(), tokens.end());
    return Tokenizer::from_vocabulary(data);
  }
};

Small small() {
  return Small({"ab", "bc", "abc", "aa", "aaaa"}, {"a b", "b c", "ab c", "a a", "aa aa"});
}
constexpr uint32_t ab = 256, abc = 258, aa = 259, aaaa = 260;

std::string message_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

void expect_refused(const std::function<void()>& f, const char* part) {
  const std::string message = message_of(f);
  EXPECT_NE(message.find(part), std::string::npos) << message;
}

TEST(ByteLevelBpe, MergesByRankThenFromTheLeft) {
  const auto tokenizer = small().build();
  EXPECT_EQ(tokenizer->encode("abc", SpecialTokens::parse), (Ids{abc}));  // a b before b c
  EXPECT_EQ(tokenizer->encode("abbc", SpecialTokens::parse), (Ids{ab, 257}));
  EXPECT_EQ(tokenizer->encode("aaa", SpecialTokens::parse), (Ids{aa, 'a'}));
  EXPECT_EQ(tokenizer->encode("aaaaaab", SpecialTokens::parse), (Ids{aaaa, 'a', ab}));
}

TEST(ByteLevelBpe, EmptyTextHasNoIds) {
  const auto tokenizer = small().build();
  EXPECT_TRUE(tokenizer->encode("", SpecialTokens::parse).empty());
  EXPECT_TRUE(tokenizer->encode(std::span<const TextSpan>()).empty());
  EXPECT_EQ(tokenizer->decode({}), "");
}

TEST(ByteLevelBpe, AnyBytesComeBackAsTheyWere) {
  const auto tokenizer = small().build();
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    std::string bytes(random() % 64, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    std::string back;
    for (const uint32_t id : tokenizer->encode(bytes, SpecialTokens::parse)) back += tokenizer->token_bytes(id);
    ASSERT_EQ(back, bytes) << "round " << round;
    ASSERT_EQ(tokenizer->decode(tokenizer->encode(bytes, SpecialTokens::parse)), to_valid_utf8(bytes));
  }
}

TEST(ByteLevelBpe, DamagedTextDoesNotDisturbItsNeighbours) {
  const auto tokenizer = small().build();
  EXPECT_EQ(tokenizer->encode("abc\xFF\xE2\x82 abc", SpecialTokens::parse), (Ids{abc, 0xFF, 0xE2, 0x82, ' ', abc}));
}

// The reference: merges the best pair again and again, in quadratic time.
Ids slow_merge(const std::vector<std::pair<std::pair<uint32_t, uint32_t>, uint32_t>>& ranked, Ids ids) {
  for (;;) {
    size_t best = ranked.size(), at = 0;
    for (size_t i = 0; i + 1 < ids.size(); ++i) {
      for (size_t rank = 0; rank < best; ++rank) {
        if (ranked[rank].first == std::pair(ids[i], ids[i + 1])) best = rank, at = i;
      }
    }
    if (best == ranked.size()) return ids;
    ids[at] = ranked[best].second;
    ids.erase(ids.begin() + static_cast<ptrdiff_t>(at) + 1);
  }
}

TEST(ByteLevelBpe, AgreesWithThePlainAlgorithm) {
  const auto tokenizer = small().build();
  const std::vector<std::pair<std::pair<uint32_t, uint32_t>, uint32_t>> ranked = {
      {{'a', 'b'}, ab}, {{'b', 'c'}, 257}, {{ab, 'c'}, abc}, {{'a', 'a'}, aa}, {{aa, aa}, aaaa}};
  std::mt19937 random(2);
  for (int round = 0; round < 500; ++round) {
    std::string text(random() % 40, '\0');
    for (char& c : text) c = static_cast<char>('a' + random() % 3);
    ASSERT_EQ(tokenizer->encode(text, SpecialTokens::parse), slow_merge(ranked, Ids(text.begin(), text.end()))) << text;
  }
}

TEST(ByteLevelBpe, AMillionRepeatedCharactersTakeLinearTime) {
  const auto tokenizer = golden::tiny_tokenizer();
  for (const std::string unit : {"a", " ", "\n", "-", "1", "\xC3\xA9", "\xCC\x81", "\xF0\x9F\x98\x80", "\xFF"}) {
    std::string text;
    for (int i = 0; i < 1'000'000; ++i) text += unit;
    const test::ProcessorClock clock;
    const Ids ids = tokenizer->encode(text, SpecialTokens::parse);
    EXPECT_FALSE(ids.empty());
    // A quadratic algorithm would take minutes; a busy machine with sanitizers stays far below this.
    EXPECT_LT(clock.seconds(), 30.0) << "unit of " << unit.size() << " bytes";
  }
}

TEST(ByteLevelBpe, ABytesWithoutATokenIsDroppedOrReplaced) {
  Small vocabulary = small();
  vocabulary.tokens['z'] = "unused z";
  EXPECT_EQ(vocabulary.build()->encode("azb", SpecialTokens::parse), (Ids{ab})) << "as if it were not there";
  const uint32_t unknown = vocabulary.add("<unk>", TokenType::unknown);
  vocabulary.data.unknown = unknown;
  EXPECT_EQ(vocabulary.build()->encode("azb", SpecialTokens::parse), (Ids{'a', unknown, 'b'}));
}

TEST(Tokenizer, SpecialTokensAreMatchedOnlyWhereAllowed) {
  Small vocabulary = small();
  const uint32_t end = vocabulary.add("<|end|>", TokenType::control);
  const uint32_t longer = vocabulary.add("<|end|>>", TokenType::control);
  const uint32_t think = vocabulary.add("<think>", TokenType::user_defined);
  const auto tokenizer = vocabulary.build();
  EXPECT_EQ(tokenizer->encode("a<|end|>b", SpecialTokens::parse), (Ids{'a', end, 'b'}));
  EXPECT_EQ(tokenizer->encode("<|end|>>", SpecialTokens::parse), (Ids{longer})) << "the longest counts";
  EXPECT_EQ(tokenizer->encode("<|end|>", SpecialTokens::as_text), (Ids{'<', '|', 'e', 'n', 'd', '|', '>'}));
  EXPECT_EQ(tokenizer->encode("<think>", SpecialTokens::as_text), (Ids{think})) << "no control token";
  EXPECT_EQ(tokenizer->decode(Ids{'a', end, think}, true), "a<think>");
  EXPECT_EQ(tokenizer->decode(Ids{'a', end, think}, false), "a<|end|><think>");
  EXPECT_TRUE(tokenizer->is_special(end));
  EXPECT_FALSE(tokenizer->is_special(think));
  EXPECT_EQ(tokenizer->find_special("<|end|>"), end);
  EXPECT_EQ(tokenizer->find_special("<|fin|>"), std::nullopt);
}

TEST(Tokenizer, ASpecialTokenCannotBeAssembledAcrossSpans) {
  Small vocabulary = small();
  vocabulary.add("<|end|>", TokenType::control);
  const auto tokenizer = vocabulary.build();
  const TextSpan spans[] = {{"<|en", SpecialTokens::as_text}, {"d|>", SpecialTokens::parse}};
  EXPECT_EQ(tokenizer->encode(spans), (Ids{'<', '|', 'e', 'n', 'd', '|', '>'}));
  const TextSpan both[] = {{"<|en", SpecialTokens::parse}, {"d|>", SpecialTokens::parse}};
  EXPECT_EQ(tokenizer->encode(both), (Ids{'<', '|', 'e', 'n', 'd', '|', '>'})) << "it must lie inside one span";
}

TEST(Tokenizer, OrdinaryTextMergesAcrossSpans) {
  const auto tokenizer = small().build();
  const TextSpan spans[] = {{"a", SpecialTokens::parse}, {"bc", SpecialTokens::as_text}};
  EXPECT_EQ(tokenizer->encode(spans), (Ids{abc}));
}

TEST(Tokenizer, IdsOutsideTheVocabularyHaveNoText) {
  const auto tokenizer = small().build();
  EXPECT_EQ(tokenizer->token_bytes(1u << 30), "");
  EXPECT_EQ(tokenizer->decode(Ids{'a', 0xFFFFFFFF, 'b'}), "ab");
  EXPECT_FALSE(tokenizer->is_special(0xFFFFFFFF));
}

TEST(Tokenizer, APieceCanBeShownAnywhere) {
  const auto tokenizer = small().build();
  EXPECT_EQ(tokenizer->piece(abc), "abc");
  EXPECT_EQ(tokenizer->piece(0xE2), std::string(replacement_character));
  EXPECT_EQ(tokenizer->piece(0x1B).find('\x1B'), std::string::npos);
  EXPECT_EQ(tokenizer->piece('\n').find('\n'), std::string::npos);
}

TEST(Tokenizer, EndIdsHoldEosAndTheKnownEndsOfATurn) {
  Small vocabulary = small();
  const uint32_t im_end = vocabulary.add("<|im_end|>", TokenType::control);
  const uint32_t eos = vocabulary.add("<fin>", TokenType::control);
  vocabulary.data.eos = eos;
  const auto tokenizer = vocabulary.build();
  EXPECT_EQ(Ids(tokenizer->end_ids().begin(), tokenizer->end_ids().end()), (Ids{im_end, eos}));
}

Ids ends_of(const Tokenizer& tokenizer) {
  return {tokenizer.end_ids().begin(), tokenizer.end_ids().end()};
}

TEST(Tokenizer, ATokenThatEndsAReplyByItsNameDoesWhateverItsType) {
  const char* const names[] = {"<|im_end|>",
                               "<|endoftext|>",
                               "<|end_of_text|>",
                               "<|eot_id|>",
                               "<|eom_id|>",
                               "<|end|>",
                               "<|return|>",
                               "<|calls|>",
                               "<|flush|>",
                               "<end_of_turn>",
                               "<end_of_utterance>",
                               "<turn|>",
                               "<|tool_response>",
                               "<eos>",
                               "[EOS]",
                               "<EOT>",
                               "_<EOT>",
                               "[EOT]",
                               "[e~[",
                               "<\uFF5Cend\u2581of\u2581sentence\uFF5C>",
                               "<|fim_pad|>",
                               "<PAD>",
                               "[PAD]",
                               "<|repo_name|>",
                               "<reponame>",
                               "<|file_sep|>"};
  for (const char* name : names) {
    for (const TokenType type : {TokenType::normal, TokenType::user_defined, TokenType::control, TokenType::unused}) {
      Small vocabulary = small();
      const uint32_t id = vocabulary.add(name, type);
      const auto tokenizer = vocabulary.build();
      EXPECT_EQ(ends_of(*tokenizer), (Ids{id})) << name;
      EXPECT_TRUE(tokenizer->is_special(id)) << name;
      EXPECT_EQ(tokenizer->encode(name, SpecialTokens::parse), (Ids{id})) << name;
      EXPECT_EQ(std::ranges::count(tokenizer->encode(name, SpecialTokens::as_text), id), 0) << name;
    }
  }
}

TEST(Tokenizer, TokensOfFillingInAreControlTokensAndEndNothing) {
  Small vocabulary = small();
  const uint32_t prefix = vocabulary.add("<|fim_prefix|>", TokenType::user_defined);
  const auto tokenizer = vocabulary.build();
  EXPECT_TRUE(tokenizer->is_special(prefix));
  EXPECT_EQ(ends_of(*tokenizer), Ids());
}

TEST(Tokenizer, MarksOfGemmaAreControlTokensWhateverTheFileTypesThem) {
  Small vocabulary = small();
  Ids marks;
  for (const char* name : {"<|channel>", "<channel|>", "<|think|>", "<|tool>", "<tool|>", "<|tool_call>",
                           "<tool_call|>", "<|\"|>", "<tool_response|>"})
    marks.push_back(vocabulary.add(name, TokenType::user_defined));
  for (const uint32_t id : marks) EXPECT_FALSE(vocabulary.build()->is_special(id)) << "of another family";
  vocabulary.add("<|turn>", TokenType::control);
  const uint32_t end = vocabulary.add("<turn|>", TokenType::control);
  const auto tokenizer = vocabulary.build();
  for (const uint32_t id : marks) EXPECT_TRUE(tokenizer->is_special(id));
  EXPECT_TRUE(ReplyChannels::known_to(*tokenizer));
  EXPECT_FALSE(ReplyChannels::has_calls(*tokenizer));
  EXPECT_EQ(ends_of(*tokenizer), (Ids{end}));
}

TEST(Tokenizer, TheEndOfASentenceEndsAReplyOnlyWhereTheFileTypesItSo) {
  for (const TokenType type : {TokenType::normal, TokenType::user_defined}) {
    Small vocabulary = small();
    const uint32_t id = vocabulary.add("</s>", type);
    const auto tokenizer = vocabulary.build();
    EXPECT_EQ(ends_of(*tokenizer), Ids());
    EXPECT_FALSE(tokenizer->is_special(id));
  }
  Small typed = small();
  const uint32_t id = typed.add("</s>", TokenType::control);
  EXPECT_EQ(ends_of(*typed.build()), (Ids{id}));
  const uint32_t response = typed.add("<|tool_response>", TokenType::control);
  EXPECT_EQ(ends_of(*typed.build()), (Ids{response})) << "Gemma's, where it is a tag";
}

TEST(Tokenizer, TheEndOfAMessageDoesNotEndAReplyThatHasOtherEnds) {
  for (const auto& others : {std::vector<const char*>{"<|return|>", "<|call|>"}, {"<|flush|>", "<|calls|>"}}) {
    Small vocabulary = small();
    const uint32_t end = vocabulary.add("<|end|>", TokenType::control);
    Ids ends;
    for (const char* name : others) ends.push_back(vocabulary.add(name, TokenType::control));
    EXPECT_EQ(ends_of(*vocabulary.build()), ends);
    vocabulary.data.eos = end;
    const auto tokenizer = vocabulary.build();
    EXPECT_EQ(ends_of(*tokenizer), ends) << "even where the file names it";
    EXPECT_EQ(Ids(tokenizer->message_end_ids().begin(), tokenizer->message_end_ids().end()), (Ids{end}));
    EXPECT_TRUE(tokenizer->is_special(end));
  }
}

TEST(TokenizerErrors, EachNamesWhatIsWrong) {
  const auto refused = [](const char* part, const std::function<void(Small&)>& damage) {
    Small vocabulary = small();
    damage(vocabulary);
    expect_refused([&] { vocabulary.build(); }, part);
  };
  refused("\"t5\"", [](Small& v) { v.data.model = "t5"; });
  refused("supported are \"gpt2\"", [](Small& v) { v.data.model = ""; });
  refused("supported are gpt-2", [](Small& v) { v.data.pre_tokenizer = "nobody"; });
  refused("no tokens", [](Small& v) { v.tokens.clear(), v.data.types.clear(); });
  refused("has no token types (tokenizer.ggml.token_type)", [](Small& v) { v.data.types.clear(); });
  refused("has no merges (tokenizer.ggml.merges)", [](Small& v) { v.data.merges.clear(); });
  refused("261 tokens but 260", [](Small& v) { v.data.types.pop_back(); });
  refused("Token 3 has the type 9", [](Small& v) { v.data.types[3] = 9; });
  refused("end-of-text token has the id 261", [](Small& v) { v.data.eos = 261; });
  refused("begin-of-text token has the id 4294967295", [](Small& v) { v.data.bos = 0xFFFFFFFF; });
  refused("Merge 5", [](Small& v) { v.data.merges.push_back("a z"); });
  refused("\"az\"", [](Small& v) { v.data.merges.push_back("a z"); });
  for (const char* merge : {"", "a", " ", "a ", "  "}) {
    refused("two tokens with a space", [&](Small& v) { v.data.merges.push_back(merge); });
  }
}

}  // namespace
}  // namespace canopy
