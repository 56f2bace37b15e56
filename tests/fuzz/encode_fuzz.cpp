// Encoding and decoding of any bytes with whole vocabularies: ids equal those of the reference, decoding gives the text
// back, and no text becomes a control token. The first byte of the input chooses the tokenizer; the second says where
// the text is cut into a span that may contain control tokens and one that may not; the rest is the text.

#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/text/vocabulary.h"
#include "tests/fuzz/harness.h"
#include "tests/fuzz/reference_tokenizer.h"
#include "tests/fuzz/tokenizer_checks.h"
#include "tests/text/golden_text.h"

namespace canopy::fuzz {
namespace {

// Longest text to compare, in bytes: the reference takes quadratic time.
constexpr size_t most_compared = 400;

// A vocabulary with the strings that it views, its tokenizer, and the reference for it.
struct Subject {
  std::vector<std::string> tokens, merges;
  VocabularyData data;
  std::unique_ptr<Tokenizer> tokenizer;
  std::unique_ptr<ReferenceTokenizer> reference;

  void put(std::string token, TokenType type, float score = 0) {
    tokens.push_back(std::move(token));
    data.types.push_back(static_cast<int32_t>(type));
    data.scores.push_back(score);
  }
  void build() {
    data.tokens.assign(tokens.begin(), tokens.end());
    data.merges.assign(merges.begin(), merges.end());
    tokenizer = Tokenizer::from_vocabulary(data);
    require(ReferenceTokenizer::covers(data), "the reference covers the harness's own vocabularies");
    reference = std::make_unique<ReferenceTokenizer>(data);
  }
};

// The tiny model's vocabulary, which has every byte, with this pre-tokenizer.
Subject byte_level(const char* pre_tokenizer) {
  static const nlohmann::json model =
      nlohmann::json::parse(golden::read_text(golden::folder() / "tiny-qwen3" / "tokenizer.json")).at("model");
  Subject subject;
  subject.data.model = "gpt2";
  subject.data.pre_tokenizer = pre_tokenizer;
  std::vector<std::string> by_id(model.at("vocab").size());
  for (const auto& [token, id] : model.at("vocab").items()) by_id.at(id.get<size_t>()) = token;
  for (const std::string& token : by_id) subject.put(token, TokenType::normal);
  for (const char* control : {"<|im_start|>", "<|im_end|>"}) subject.put(control, TokenType::control);
  for (const char* added : {"<think>", "  "}) subject.put(added, TokenType::user_defined);
  for (const auto& merge : model.at("merges")) {
    subject.merges.push_back(merge.at(0).get<std::string>() + " " + merge.at(1).get<std::string>());
  }
  return subject;
}

// Characters and words with scores, and every byte: a small vocabulary like Llama 2's.
Subject sentence_pieces(bool has_own_space) {
  Subject subject;
  subject.data.model = "llama";
  subject.data.add_space_prefix = has_own_space;
  subject.put("<unk>", TokenType::unknown);
  subject.put("<s>", TokenType::control);
  subject.put("</s>", TokenType::control);
  for (int byte = 0; byte < 256; ++byte) {
    char name[8];
    std::snprintf(name, sizeof name, "<0x%02X>", static_cast<unsigned>(byte));
    subject.put(name, TokenType::byte);
  }
  subject.put("<tool>", TokenType::user_defined);
  float score = 0;
  for (const char* word : {"\u2581t",      "he",          "in",           "re",
                           "\u2581a",      "er",          "\u2581the",    "on",
                           "at",           "is",          "\u2581s",      "ll",
                           "aa",           "aaaa",        "\u2581\u2581", "\u2581\u2581\u2581\u2581",
                           "\u00e9\u00e9", "\u2581is",    "abab",         "ab",
                           "\u2581in",     "ing",         "\n\n",         "lo",
                           "hello",        "\u2581hello", "ello",         "\u2581h"}) {
    subject.put(word, TokenType::normal, --score);
  }
  for (const char* character : {"\u2581", "e", "t", "a", "o", "i", "n", "s",      "r",      "h",
                                "l",      "d", "u", "c", "m", "g", "b", "\u00e9", "\u4e2d", "\n"}) {
    subject.put(character, TokenType::normal, --score);
  }
  return subject;
}

constexpr size_t subject_count = 12;

std::array<Subject, subject_count> make_subjects() {
  std::array<Subject, subject_count> subjects = {
      byte_level("gpt-2"),          byte_level("smollm"),       byte_level("llama-bpe"),  byte_level("qwen2"),
      sentence_pieces(true),        sentence_pieces(false),     byte_level("falcon"),     byte_level("default"),
      byte_level("deepseek-coder"), byte_level("deepseek-llm"), byte_level("seed-coder"), byte_level("viking")};
  for (Subject& subject : subjects) {
    subject.build();
    check_vocabulary(*subject.tokenizer);
  }
  return subjects;
}

}  // namespace

void run(std::string_view input) {
  static const std::array<Subject, subject_count> subjects = make_subjects();
  if (input.size() < 2) return;
  const Subject& subject = subjects[static_cast<unsigned char>(input[0]) % subjects.size()];
  const Tokenizer& tokenizer = *subject.tokenizer;
  const std::string_view text = input.substr(2);
  const size_t cut = text.size() * static_cast<unsigned char>(input[1]) / 256;

  const auto ids = tokenizer.encode(text, SpecialTokens::as_text);
  for (const uint32_t id : ids) require(!tokenizer.is_special(id), "plain text holds no control token");
  require(tokenizer.decode(ids) == subject.reference->round_trip(text), "decoding gives the text back");
  check_text(tokenizer, text);
  const TextSpan spans[] = {{text.substr(0, cut), SpecialTokens::parse}, {text.substr(cut), SpecialTokens::as_text}};
  check_special_tokens(tokenizer, spans);
  const TextSpan turned[] = {{spans[0].text, SpecialTokens::as_text}, {spans[1].text, SpecialTokens::parse}};
  check_special_tokens(tokenizer, turned);

  const std::string_view compared = text.substr(0, most_compared);
  require(tokenizer.encode(compared, SpecialTokens::as_text) == subject.reference->encode(compared),
          "ids are the reference's");
}

}  // namespace canopy::fuzz
