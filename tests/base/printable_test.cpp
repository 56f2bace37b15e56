#include "engine/base/text.h"

#include <gtest/gtest.h>

namespace canopy {
namespace {

TEST(Printable, LeavesOrdinaryTextAlone) {
  EXPECT_EQ(printable("blk.0.attn_q.weight"), "blk.0.attn_q.weight");
  EXPECT_EQ(printable("Größe 你好 👩‍💻 ##%n"), "Größe 你好 👩‍💻 ##%n");
  EXPECT_EQ(printable(""), "");
}

TEST(Printable, DisarmsTerminalEscapes) {
  EXPECT_EQ(printable("\x1b]52;c;ZXZpbA==\a"), "\\x1b]52;c;ZXZpbA==\\x07");
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m"),
            "\\x9b31m");  // C1's one-character CSI
  EXPECT_EQ(printable(std::string_view("a\0b\x7f", 4)), "a\\x00b\\x7f");
  EXPECT_EQ(printable("a\r\nb\tc"), "a\\r\\nb\\tc");
}

TEST(Printable, ShowsBidirectionalAndInvisibleCharacters) {
  EXPECT_EQ(printable("exe\u202egnp"), "exe\\u202egnp");
  EXPECT_EQ(printable("\u2066x\u2069\u200f"), "\\u2066x\\u2069\\u200f");
  EXPECT_EQ(printable("a\u2028b"), "a\\u2028b");
  EXPECT_EQ(printable("\U000e0041"), "\\ue0041");
  EXPECT_EQ(printable("\ufdd0\uffff"), "\\ufdd0\\uffff");
}

TEST(Printable, ReplacesInvalidUtf8) {
  EXPECT_EQ(printable("a\xff"
                      "b"),
            "a\ufffdb");
  EXPECT_EQ(printable("\xc0\xaf"), "\ufffd\ufffd") << "overlong slash";
  EXPECT_EQ(printable("\xed\xa0\x80"), "\ufffd\ufffd\ufffd") << "surrogate";
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "\ufffd\ufffd\ufffd\ufffd") << "beyond U+10FFFF";
  EXPECT_EQ(printable("\xe4\xbd"), "\ufffd") << "cut short";
  EXPECT_EQ(printable("\xe4\xbd"
                      "A"),
            "\ufffdA");
}

TEST(Printable, CutsBetweenCharacters) {
  EXPECT_EQ(printable("abcdef", 6), "abcdef");
  EXPECT_EQ(printable("abcdefg", 6), "abc…");
  EXPECT_EQ(printable("ab你你", 7), "ab…");
  EXPECT_EQ(printable("\x1b\x1b", 6), "…") << "an escape is never cut in two";
  EXPECT_EQ(printable("abc", 2), "");
  EXPECT_EQ(printable(std::string(1 << 20, 'x')).size(), 256u);
}

TEST(Printable, KeepsLineBreaksOnDemand) {
  EXPECT_EQ(printable("a\n\tb\r\x1b", 100, LineBreaks::keep), "a\n\tb\\r\\x1b");
}

TEST(AsciiLetters, ChangeAlone) {
  EXPECT_EQ(ascii_lower("@AZ[ aZ_9Ä\xff"), "@az[ az_9Ä\xff");
  EXPECT_EQ(ascii_upper("`az{ Az_9ä\xff"), "`AZ{ AZ_9ä\xff");
}

}  // namespace
}  // namespace canopy
