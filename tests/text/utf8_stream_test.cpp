#include "engine/text/unicode.h"

#include <gtest/gtest.h>

namespace canopy {
namespace {

const std::string replacement(replacement_character);

// Family emoji (joined by U+200D), a flag, CJK beyond the BMP, accents, and every length of character.
const std::string sample =
    "a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80 \xF0\x9F\x91\xA9\xE2\x80\x8D\xF0\x9F\x91\xA7 \xF0\xA0\x80\x80!";

// The whole output when a text is pushed in two parts.
std::string in_two(std::string_view text, size_t cut) {
  Utf8Stream stream;
  std::string out = stream.push(text.substr(0, cut));
  out += stream.push(text.substr(cut));
  out += stream.finish();
  return out;
}

TEST(Utf8Stream, SplitAtEveryByteNeverShowsAReplacement) {
  for (size_t cut = 0; cut <= sample.size(); ++cut) {
    Utf8Stream stream;
    const std::string head = stream.push(sample.substr(0, cut));
    EXPECT_EQ(valid_utf8_prefix(head), head.size()) << "cut at " << cut;
    EXPECT_EQ(head.find(replacement), std::string::npos) << "cut at " << cut;
    EXPECT_TRUE(sample.starts_with(head));
    EXPECT_EQ(head.size() + stream.pending(), cut);
    EXPECT_EQ(in_two(sample, cut), sample);
  }
}

TEST(Utf8Stream, ByteByByteGivesWholeCharacters) {
  Utf8Stream stream;
  std::string text;
  for (const char c : sample) {
    text += stream.push(std::string_view(&c, 1));
    EXPECT_EQ(text.find(replacement), std::string::npos);
  }
  EXPECT_EQ(text, sample);
  EXPECT_EQ(stream.finish(), "");
}

TEST(Utf8Stream, ShowsACharacterAsSoonAsItIsWhole) {
  Utf8Stream stream;
  EXPECT_EQ(stream.push("\xF0\x9F\x98"), "");
  EXPECT_EQ(stream.pending(), 3u);
  EXPECT_EQ(stream.push("\x80"), "\xF0\x9F\x98\x80");
  EXPECT_EQ(stream.pending(), 0u);
}

TEST(Utf8Stream, UnfinishedCharacterBecomesOneReplacementAtTheEnd) {
  Utf8Stream stream;
  EXPECT_EQ(stream.push("x\xE2\x82"), "x");
  EXPECT_EQ(stream.finish(), replacement);
  EXPECT_EQ(stream.push("y"), "y") << "the stream starts anew";
}

struct Damaged {
  const char* what;
  std::string bytes;
  int replacements;  // one for each maximal part of a character
};

TEST(Utf8Stream, DamagedBytesBecomeOneReplacementForEachMaximalPart) {
  const Damaged cases[] = {
      {"lone continuation", "\x80", 1},
      {"two continuations", "\xBF\x80", 2},
      {"never a lead byte", "\xC0\xC1\xF5\xFF", 4},
      {"overlong slash", "\xE0\x80\xAF", 3},
      {"surrogate", "\xED\xA0\x80", 3},
      {"above U+10FFFF", "\xF4\x90\x80\x80", 4},
      {"cut of three", "\xE2\x82", 1},
      {"cut of four", "\xF0\x9F\x98", 1},
      {"two cuts in a row", "\xF0\x9F\xE2\x82", 2},
  };
  for (const Damaged& damaged : cases) {
    SCOPED_TRACE(damaged.what);
    std::string expected = "<";
    for (int i = 0; i < damaged.replacements; ++i) expected += replacement;
    expected += ">";
    const std::string text = "<" + damaged.bytes + ">";
    EXPECT_EQ(to_valid_utf8(text), expected);
    for (size_t cut = 0; cut <= text.size(); ++cut) {
      EXPECT_EQ(in_two(text, cut), expected) << "cut at " << cut;
    }
  }
}

TEST(Utf8Stream, EveryPairOfBytesIsTheSameInOneCallOrTwo) {
  for (int first = 0; first < 256; ++first) {
    for (int second = 0; second < 256; ++second) {
      const std::string pair = {static_cast<char>(first), static_cast<char>(second)};
      const std::string text = in_two(pair, 1);
      ASSERT_EQ(text, to_valid_utf8(pair)) << first << " " << second;
      ASSERT_EQ(valid_utf8_prefix(text), text.size());
    }
  }
}

}  // namespace
}  // namespace canopy
