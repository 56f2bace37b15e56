// The order in which lines are read. What is expected is what FriBidi's own fribidi_log2vis() makes of these texts, and
// by hand of some.

#include "app/platform/text_order.h"

#include <gtest/gtest.h>

#include <string>

namespace canopy::app {
namespace {

/// Bytes [begin, end) of a text as they are seen, from left to right.
std::string seen(const std::string& text, size_t begin, size_t end, ParagraphWay way = ParagraphWay::by_text) {
  const TextOrder order = order_of(text, way);
  std::string out;
  for (const OrderedRun& run : ordered_runs(text, order, static_cast<uint32_t>(begin), static_cast<uint32_t>(end))) {
    std::string part;
    for (uint32_t at = run.begin; at < run.end; at += character_at(text, at).length) {
      const Character each = character_at(text, at);
      const char32_t other = run.rtl ? mirrored(each.c) : each.c;
      const std::string letter = other == each.c ? text.substr(at, each.length) : std::string(1, char(other));
      part = run.rtl ? letter + part : part + letter;
    }
    out += part;
  }
  return out;
}
std::string seen(const std::string& text) {
  return seen(text, 0, text.size());
}

TEST(TextOrder, LatinStaysAsItIs) {
  for (const char* text : {"", "plain", "3 + 4 = (7)", "\u00fc\u4f60\u597d", "a\nb"}) {
    EXPECT_TRUE(order_of(text).plain()) << text;
    EXPECT_EQ(seen(text), text);
  }
}

TEST(TextOrder, MixedLinesAreReadAsFriBidiSays) {
  EXPECT_EQ(seen("abc \u05d0\u05d1\u05d2 123 def"), "abc 123 \u05d2\u05d1\u05d0 def");
  EXPECT_EQ(seen("\u05d0\u05d1\u05d2 abc 123 \u05d3\u05d4!"), "!\u05d4\u05d3 abc 123 \u05d2\u05d1\u05d0");
  EXPECT_EQ(seen("price (\u05e9\u05dc\u05d5\u05dd 12.5%) end"), "price (12.5% \u05dd\u05d5\u05dc\u05e9) end");
  EXPECT_EQ(seen("\u05e9\u05dc\u05d5\u05dd (hello) \u05e2\u05d5\u05dc\u05dd"),
            "\u05dd\u05dc\u05d5\u05e2 (hello) \u05dd\u05d5\u05dc\u05e9");
  EXPECT_EQ(seen("\u0661\u0662 abc \u05d0 [x]"), "\u0661\u0662 abc \u05d0 [x]");
  EXPECT_EQ(seen("\u0645 (\u0646) 1"), "1 (\u0646) \u0645") << "brackets are turned with what they hold";
}

TEST(TextOrder, ALineThatWasWrappedIsOrderedByItself) {
  const std::string text = "\u05d0\u05d1 abc \u05d2\u05d3 def";
  const size_t cut = text.find("\u05d2");
  EXPECT_EQ(seen(text, 0, cut), " abc \u05d1\u05d0") << "the blank at its end stands where the paragraph ends";
  EXPECT_EQ(seen(text, cut, text.size()), "def \u05d3\u05d2");
}

TEST(TextOrder, EachParagraphHasItsOwnWay) {
  const std::string text = "abc \u05d0!\n\u05d0 abc!";
  const TextOrder order = order_of(text);
  const size_t second = text.find('\n') + 1;
  EXPECT_FALSE(order.rtl_paragraph(0));
  EXPECT_TRUE(order.rtl_paragraph(second));
  EXPECT_EQ(seen(text, 0, second - 1), "abc \u05d0!");
  EXPECT_EQ(seen(text, second, text.size()), "!abc \u05d0");
}

TEST(TextOrder, CodeRunsFromLeftToRightAndIsNotTurnedByMarks) {
  const std::string text = "\u05d0\u05d1 = f(1);";
  EXPECT_EQ(seen(text, 0, text.size(), ParagraphWay::code), "\u05d1\u05d0 = f(1);");
  const std::string hidden = "if (\u202eadmin\u202c) {";
  EXPECT_EQ(seen(hidden, 0, hidden.size(), ParagraphWay::code), hidden);
  EXPECT_NE(seen(hidden), hidden) << "a text may turn letters round";
}

TEST(TextOrder, OrderCoversEachByteOnceWhateverTheText) {
  for (const std::string text :
       {"\xff\u05d0\xff", "\u05d0\xd7", "\u202e\u2067\u05d0a1\u2069\u202c", "\u05d0\t\u05d1 \t"}) {
    std::vector<int> covered(text.size(), 0);
    for (const OrderedRun& run : ordered_runs(text, order_of(text), 0, static_cast<uint32_t>(text.size())))
      for (uint32_t at = run.begin; at < run.end; ++at) ++covered[at];
    for (const int times : covered) EXPECT_EQ(times, 1);
  }
}

TEST(TextOrder, PlainTextIsToldFromOther) {
  for (const char* text : {"", "abc", "\u00fc\u0416\u03b1", "\u4f60\u597d", "\u2192 x"}) {
    EXPECT_TRUE(is_plain(text)) << text;
    EXPECT_FALSE(reads_unlike_typed(text)) << text;
  }
  for (const char* text : {"\u0e2a", "\U0001F600", "\u2764\ufe0f"}) {
    EXPECT_FALSE(is_plain(text)) << text;
    EXPECT_FALSE(reads_unlike_typed(text)) << "letters apart can be read: " << text;
  }
  for (const char* text : {"x \u05d0", "\u0645", "\u0928"}) {
    EXPECT_FALSE(is_plain(text)) << text;
    EXPECT_TRUE(reads_unlike_typed(text)) << text;
  }
}

}  // namespace
}  // namespace canopy::app
