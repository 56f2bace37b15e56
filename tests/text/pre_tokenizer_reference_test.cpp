// The expressions of pre-tokenizers cut like what was written by hand from their meaning (tests/fuzz), for every
// character in many surroundings.

#include <gtest/gtest.h>
#include <utf8proc.h>

#include <random>
#include <string>

#include "engine/text/pre_tokenizer.h"
#include "tests/fuzz/reference_split.h"

namespace canopy {
namespace {

constexpr const char* by_hand[] = {"gpt-2",          "smollm",       "llama-bpe",  "qwen2",  "falcon",
                                   "deepseek-coder", "deepseek-llm", "seed-coder", "viking", "default",
                                   "mellum",         "kormo",        "falcon-h1",  ""};

void append_utf8(std::string& text, int32_t code) {
  utf8proc_uint8_t bytes[4];
  const auto length = utf8proc_encode_char(code, bytes);
  text.append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(length));
}

/// Whether both libraries know the character: each has its own version of Unicode.
bool is_assigned(const Regex& unassigned, Regex::Matcher& matcher, int32_t code) {
  if (code >= 0xD800 && code < 0xE000) return false;
  if (utf8proc_category(code) == UTF8PROC_CATEGORY_CN) return false;
  std::string text;
  append_utf8(text, code);
  return !unassigned.find(text, 0, matcher).has_value();
}

void expect_same(const PreTokenizer& tokenizer, const char* name, const std::string& text) {
  const auto expected = fuzz::split_by_hand(name, text);
  const auto pieces = tokenizer.split(text);
  if (pieces == expected) return;
  std::string shown;
  for (const auto piece : pieces) shown += "[" + std::string(piece) + "]";
  shown += " instead of ";
  for (const auto piece : expected) shown += "[" + std::string(piece) + "]";
  ADD_FAILURE() << name << ": " << shown;
}

TEST(PreTokenizerReference, CutsEveryCharacterAlike) {
  const Regex unassigned(R"(\p{Cn})");
  Regex::Matcher matcher;
  for (const char* name : by_hand) {
    ASSERT_TRUE(fuzz::is_split_by_hand(name)) << name;
    const PreTokenizer tokenizer = PreTokenizer::named(name);
    std::string text;
    for (int32_t code = 0; code < 0x20000 && !HasFailure(); ++code) {
      if (is_assigned(unassigned, matcher, code)) {
        for (const char* before : {"a", "1", " ", "!", "\n", "  "}) {
          text += before;
          append_utf8(text, code);
        }
        append_utf8(text, code);
      }
      if (code % 64 < 63) continue;
      expect_same(tokenizer, name, text);
      text.clear();
    }
  }
}

TEST(PreTokenizerReference, CutsRandomTextsAlike) {
  const std::string parts[] = {
      "a",    "Z",      "\u00E9", "\u4E2D", "\uAC00", "\u05D0", "1",          "\u0663", " ", "  ",  "\t",     "\n",
      "\r\n", "\u00A0", "'s",     "'LL",    "'re",    "!",      "?",          ".",      ",", "(",   "|",      "`",
      "$",    "-",      "\uFF01", "\u3002", "\u2026", "\u0301", "\U0001F600", "_",      "~", "123", "1234567"};
  std::mt19937 random(7);
  std::uniform_int_distribution<size_t> part(0, std::size(parts) - 1), length(1, 12);
  for (const char* name : by_hand) {
    const PreTokenizer tokenizer = PreTokenizer::named(name);
    for (int i = 0; i < 4000 && !HasFailure(); ++i) {
      std::string text;
      for (size_t n = length(random); n > 0; --n) text += parts[part(random)];
      expect_same(tokenizer, name, text);
    }
  }
}

}  // namespace
}  // namespace canopy
