#include "engine/base/text.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <thread>

#include "tests/base/expect_error.h"
#include "tests/base/temp_folder.h"

namespace canopy {
namespace {

using namespace std::string_view_literals;

std::string text_of(std::string_view bytes) {
  return text_from_bytes(std::string(bytes), "\"a.txt\"");
}

std::string refusal_of(std::string_view bytes) {
  return test::error_of([&] { text_of(bytes); });
}

/// A text in UTF-16 without a mark.
std::string utf16(std::u16string_view text, bool big_endian) {
  std::string bytes;
  for (const char16_t unit : text) {
    const char low = static_cast<char>(unit & 0xFF), high = static_cast<char>(unit >> 8);
    bytes += {big_endian ? high : low, big_endian ? low : high};
  }
  return bytes;
}

TEST(TextEncoding, TakesUtf8AndDropsItsMark) {
  EXPECT_EQ(text_of(""), "");
  EXPECT_EQ(text_of("Größe\r\n你好 👩‍💻"), "Größe\r\n你好 👩‍💻");
  EXPECT_EQ(text_of("\xEF\xBB\xBFHi"), "Hi");
  EXPECT_EQ(text_of("\xEF\xBB\xBF"), "");
  EXPECT_EQ(text_of("Hi\xEF\xBB\xBF"), "Hi\xEF\xBB\xBF");  // a mark stands only at the front
}

TEST(TextEncoding, ReadsUtf16AndUtf32WithAMark) {
  constexpr std::u16string_view text = u"aß\u4F60\U0001F469\n";
  EXPECT_EQ(text_of("\xFF\xFE" + utf16(text, false)), "aß你👩\n");
  EXPECT_EQ(text_of("\xFE\xFF" + utf16(text, true)), "aß你👩\n");
  EXPECT_EQ(text_of("\xFF\xFE\0\0a\0\0\0\x69\xF4\x01\0"sv), "a👩");
  EXPECT_EQ(text_of("\0\0\xFE\xFF\0\0\0a\0\1\xF4\x69"sv), "a👩");
  EXPECT_EQ(text_of("\xFF\xFE"), "");
}

TEST(TextEncoding, RefusesDamagedUtf16) {
  EXPECT_NE(refusal_of("\xFF\xFE\x61\0\x62"sv).find("begins as UTF-16 but ends inside the character at byte 4"),
            std::string::npos);
  EXPECT_NE(refusal_of("\xFF\xFE" + utf16(u"a\xD800z", false)).find("at byte 4"), std::string::npos);
  EXPECT_NE(refusal_of("\xFF\xFE" + utf16(u"a\xDC00", false)).find("at byte 4"), std::string::npos);
  EXPECT_NE(refusal_of("\xFF\xFE" + utf16(u"a\0b"sv, false)).find("at byte 4"), std::string::npos);
  EXPECT_NE(refusal_of("\xFF\xFE\0\0\0\0\x11\0"sv).find("UTF-32"), std::string::npos);
}

TEST(TextEncoding, SaysWhatATextInAnotherEncodingSeemsToBe) {
  const std::string latin = refusal_of("caf\xE9");
  EXPECT_NE(latin.find("\"a.txt\" is not in UTF-8: byte 3 is 0xE9"), std::string::npos) << latin;
  EXPECT_NE(latin.find("must be UTF-8"), std::string::npos) << latin;
  for (const bool big_endian : {false, true}) {
    for (const std::u16string_view text : {u"Hi there\r\n"sv, u"Привет, как дела?\n"sv, u"你好,世界。\n"sv}) {
      const std::string refused = refusal_of(utf16(text, big_endian));
      EXPECT_NE(refused.find("UTF-16 without a byte-order mark"), std::string::npos) << refused;
    }
  }
  EXPECT_NE(refusal_of("H\0\0\0i\0\0\0"sv).find("UTF-32 without"), std::string::npos);
}

TEST(TextEncoding, RefusesBytesZeroAsNoText) {
  EXPECT_NE(refusal_of("ab\0c"sv).find("\"a.txt\" is no text: byte 2 is 0"), std::string::npos);
  EXPECT_NE(refusal_of("\x7f"
                       "ELF\2\1\1\0\0\0\0\0"sv)
                .find("byte 7 is 0"),
            std::string::npos);
  EXPECT_NE(refusal_of("a line\nand more text\0, and more\n"sv).find("byte 20 is 0"), std::string::npos);
  EXPECT_NE(refusal_of("\xEF\xBB\xBF\0"sv).find("is 0"), std::string::npos);
}

TEST(TextEncoding, KnowsTextFromItsFront) {
  EXPECT_TRUE(begins_like_text(""));
  EXPECT_TRUE(begins_like_text("int main"));
  EXPECT_TRUE(begins_like_text("caf\xE9"));
  EXPECT_TRUE(begins_like_text("\xFF\xFEH\0i\0"sv));
  EXPECT_TRUE(begins_like_text("H\0i\0"sv));
  EXPECT_TRUE(begins_like_text("H\0i\0 "sv));  // cut inside a character
  EXPECT_TRUE(begins_like_text(std::string_view(utf16(u"ab \U0001F469", false)).substr(0, 8)));  // inside a pair
  EXPECT_FALSE(begins_like_text("ab\0c"sv));
  EXPECT_FALSE(begins_like_text("GGUF\3\0\0\0"sv));
}

TEST(ReadInput, ReadsFilesPipesAndStandardInputToTheirEnd) {
  const test::TempFolder folder;
  EXPECT_EQ(read_input(folder.write("a", "text"), 4), "text");
  EXPECT_EQ(read_input(folder.write("empty", ""), 4), "");
  EXPECT_EQ(read_input("/dev/null", 4), "");
  const auto pipe = folder.path() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const std::string large(1'000'000, 'x');
  {
    std::jthread writer([&] { std::ofstream(pipe) << large << std::flush; });
    EXPECT_EQ(read_input(pipe, large.size()), large);
  }
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const int standard = ::dup(STDIN_FILENO);
  ASSERT_EQ(::dup2(ends[0], STDIN_FILENO), STDIN_FILENO);
  ASSERT_EQ(::write(ends[1], "\xEF\xBB\xBFhi", 5), 5);
  ::close(ends[1]);
  EXPECT_EQ(read_text_input("-", 5), "hi");
  EXPECT_EQ(read_input("/dev/stdin", 5), "");  // nothing is left
  ::dup2(standard, STDIN_FILENO);
  ::close(standard);
  ::close(ends[0]);
}

TEST(ReadInput, RefusesWhatIsTooLargeOrNoText) {
  const test::TempFolder folder;
  test::expect_error("has more than 4 bytes; at most 4 are allowed",
                     [&] { read_input(folder.write("b", "12345"), 4); });
  test::expect_error("The file /dev/zero has more than 1000000 bytes", [] { read_input("/dev/zero", 1'000'000); });
  test::expect_error("does not exist", [&] { read_input(folder.path() / "none", 4); });
  test::expect_error("is a directory", [&] { read_input(folder.path(), 4); });
  const auto latin = folder.write("latin", "caf\xE9");
  test::expect_error("The file " + latin.string() + " is not in UTF-8", [&] { read_text_input(latin, 100); });
}

}  // namespace
}  // namespace canopy
