#include "app/ui/look.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>

#include "tests/app/support/ui_harness.h"

namespace canopy::test {
namespace {

using app::TextBlock;
using app::Type;

TEST(TextBlock, AppendingGivesTheSameLinesAsLayingOutAtOnce) {
  const std::string text =
      "The merge step joins two lists.\n\nIt looks at the first item of each list \u2014 \u4f60\u597d\u4e16\u754c "
      "averyveryveryverylongwordthatfitsnowhereatallinanarrowcolumn \u2014 and moves the smaller one.\n";
  UiHarness ui;
  ASSERT_TRUE(ui.run([&](ImGuiTestContext*) {
    for (float width : {60.0f, 173.0f, 400.0f}) {
      TextBlock streamed, whole;
      for (size_t n = 1; n <= text.size(); ++n) {
        if (n < text.size() && (static_cast<unsigned char>(text[n]) & 0xC0) == 0x80) continue;  // whole characters only
        streamed.layout(std::string_view(text).substr(0, n), Type::chat, width);
      }
      whole.layout(text, Type::chat, width);
      EXPECT_EQ(streamed.line_count(), whole.line_count()) << width;
      EXPECT_GT(whole.line_count(), 4u);
    }
  }));
}

TEST(TextBlock, ALongParagraphCostsItsLengthAndNotItsSquare) {
  std::string text;
  for (int i = 0; i < 200'000; ++i) text += "word ";
  UiHarness ui;
  ASSERT_TRUE(ui.run([&](ImGuiTestContext*) {
    TextBlock block;
    const auto begin = std::chrono::steady_clock::now();
    block.layout(text, Type::chat, 240);
    EXPECT_GT(block.line_count(), 20'000u);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(2));  // the square takes ten and more
  }));
}

TEST(TextBlock, BreaksOnlyAtBlanksWhereThereAreSome) {
  UiHarness ui;
  ASSERT_TRUE(ui.run([&](ImGuiTestContext*) {
    const std::string head = "It is called \"", word = "Rayleigh\" or 3.14159.";
    for (const std::string& text : {head + word, std::string("Pi is about 3.1415926")}) {
      const size_t tail = text.find_last_of(' ') + 1;
      TextBlock whole;
      whole.layout(text, Type::chat, 4000);
      TextBlock block;
      // Slightly too narrow: the last word moves down as a whole, so the first line ends at a space.
      block.layout(text, Type::chat, whole.widest() - 2);
      ASSERT_EQ(block.line_count(), 2u) << text;
      TextBlock first, last;
      first.layout(text.substr(0, tail - 1), Type::chat, 4000);
      last.layout(text.substr(tail), Type::chat, 4000);
      EXPECT_FLOAT_EQ(block.widest(), std::max(first.widest(), last.widest())) << text;
    }
  }));
}

TEST(TextBlock, NoLineIsWiderThanTheColumn) {
  UiHarness ui;
  ASSERT_TRUE(ui.run([&](ImGuiTestContext*) {
    TextBlock block;
    block.layout("one two three four five six seven eight nine ten eleven twelve", Type::chat, 120);
    EXPECT_LE(block.widest(), 120.5f);
    EXPECT_GE(block.line_count(), 3u);
    block.layout("", Type::chat, 120);
    EXPECT_EQ(block.line_count(), 1u);
    block.layout("x", Type::chat, 0.5f);  // laying out must end also in a column narrower than a character
    EXPECT_EQ(block.line_count(), 1u);
  }));
}

}  // namespace
}  // namespace canopy::test
