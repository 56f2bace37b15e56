// Markdown blocks, their positions in the source, and text that grows.

#include "app/chat/markdown.h"

#include <gtest/gtest.h>

#include <string>

namespace canopy::app {
namespace {

using Kind = Block::Kind;

bool same(const std::vector<Block>& a, const std::vector<Block>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].kind != b[i].kind || a[i].text != b[i].text || a[i].marker != b[i].marker || a[i].indent != b[i].indent ||
        a[i].quotes != b[i].quotes || a[i].source_begin != b[i].source_begin || a[i].source_end != b[i].source_end)
      return false;
  }
  return true;
}

constexpr const char* kRich =
    "# Title\n\nA *soft* and **strong** word with `code` and [a link](https://example.org/x).\nNext line &amp; "
    "entity.\n\n"
    "1. First\n2. Second\n   - nested \u4f60\u597d\n\n3. Third\n\n> Quoted\n> twice\n\n---\n\n"
    "```python\ndef f(x):\n    return x  # \U0001F333\n\n\nprint(f(1))\n```\n\n"
    "| a | b |\n|---|--:|\n| left | right |\n| c | **d** |\n\n- [ ] to do\n- [x] done\n\nThe end.";

TEST(Markdown, BlocksAreWhatTheyAre) {
  const std::vector<Block> blocks = parse_markdown(kRich);
  std::string kinds;
  for (const Block& block : blocks) kinds += "phcrt"[static_cast<int>(block.kind)];
  EXPECT_EQ(kinds, "hpppppprctppp");
  EXPECT_EQ(blocks[1].text, "A soft and strong word with code and a link.\nNext line & entity.");
  EXPECT_EQ(blocks[1].links.at(0), "https://example.org/x");
  EXPECT_EQ(blocks[3].marker, "2.");
  EXPECT_EQ(blocks[4].indent, 2);
  EXPECT_EQ(blocks[5].marker, "3.");
  EXPECT_EQ(blocks[6].quotes, 1);
  EXPECT_EQ(blocks[9].columns, 2u);
  EXPECT_EQ(blocks[9].cells.size(), 6u);
  EXPECT_EQ(blocks[9].cells[3].align, TableCell::Align::right);
  EXPECT_EQ(blocks[11].marker, "\u2611");
}

TEST(Markdown, CodeIsByteForByteWhatWasWritten) {  // gui.md, criterion 19: copied code byte-exact
  const std::string code = "def f(x):\n\treturn x  # \U0001F333 &amp; <b>\n\n\n    print(f(1))  \n\\n";
  const std::vector<Block> blocks = parse_markdown("Look:\n\n```python\n" + code + "\n```\nDone");
  ASSERT_EQ(blocks.size(), 3u);
  EXPECT_EQ(blocks[1].kind, Kind::code);
  EXPECT_EQ(blocks[1].text, code);
  EXPECT_EQ(blocks[1].language, "python");
  // Spaces and tabs before words are kept exactly, also in a line of nothing else and in a list.
  EXPECT_EQ(parse_markdown("```\n  \tx\n \t\n\t\t y\n```").at(0).text, "  \tx\n \t\n\t\t y");
  EXPECT_EQ(parse_markdown("- ```\n  \tx\n  y\n  ```").at(0).text, "\tx\ny");
  EXPECT_EQ(parse_markdown("- ```\n\tx\n  ```").at(0).text, "  x") << "half a tab belongs to the list";
  const std::vector<Block> open = parse_markdown("~~~\nnot yet\nclosed");
  EXPECT_EQ(open.at(0).text, "not yet\nclosed");
}

TEST(Markdown, CodeKeepsItsIndentationInLists) {
  // md4c removes the columns of the list, also from a tab, and reports how many are left.
  const std::vector<Block> blocks = parse_markdown("- ```\n  a\n      b\n\t\tc\n  ```\n");
  ASSERT_EQ(blocks.size(), 1u);
  EXPECT_EQ(blocks[0].text, "a\n    b\n      c");
}

// A model that repeats itself may fill a line with spaces, which is parsed again with every token.
TEST(Markdown, ALineOfBlanksTakesNoLongerThanItsLength) {
  const std::string blanks(300'000, ' ');
  const std::vector<Block> blocks = parse_markdown("```\n" + blanks + "x\n```\n");
  ASSERT_EQ(blocks.size(), 1u);
  EXPECT_EQ(blocks[0].text, blanks + "x");
}

TEST(Markdown, EveryShownByteStandsForItselfInTheSource) {
  const std::string source = kRich;
  for (const Block& block : parse_markdown(source)) {
    for (const TextRun& run : block.runs) {
      if (run.source == TextRun::no_source || run.source_end - run.source != run.end - run.begin) continue;
      EXPECT_EQ(block.text.substr(run.begin, run.end - run.begin), source.substr(run.source, run.end - run.begin));
    }
  }
}

TEST(Markdown, SourceRangesAreFoundInWhatIsShown) {
  const std::string source = kRich;
  const std::vector<Block> blocks = parse_markdown(source);
  const auto shown = [&](const std::string& from, const std::string& part, size_t block) {
    const auto at = static_cast<uint32_t>(source.find(from));
    std::string out;
    for (const auto& [a, b] : blocks[block].shown_of(at, at + static_cast<uint32_t>(part.size())))
      out += blocks[block].text.substr(a, b - a);
    return out;
  };
  EXPECT_EQ(shown("*soft* and", "*soft* and", 1), "soft and");
  EXPECT_EQ(shown("ong** word", "ong** w", 1), "ong w");
  EXPECT_EQ(shown("&amp;", "&am", 1), "&");  // a part of an entity stands for the whole
  EXPECT_EQ(shown("return x", "return", 8), "return");
  EXPECT_EQ(shown("# Title", "# ", 0), "");
}

TEST(Markdown, BytesOfTheTextLeadBackToTheSource) {
  const std::string source = "Some **bold** text";
  const Block block = parse_markdown(source).at(0);
  EXPECT_EQ(block.source_of(0), 0u);
  EXPECT_EQ(block.source_of(5), 7u);  // the b of bold
  EXPECT_EQ(block.source_of(static_cast<uint32_t>(block.text.size())), source.size());
}

TEST(Markdown, StreamedByteByByteItEndsAsTheWhole) {
  const std::string source = kRich;
  MarkdownText growing, whole;
  whole.update(source);
  for (size_t n = 1; n <= source.size(); ++n) {
    const size_t closed = growing.closed();
    const std::vector<Block> before(growing.blocks().begin(), growing.blocks().begin() + static_cast<long>(closed));
    growing.update(std::string_view(source).substr(0, n));
    ASSERT_GE(growing.closed(), closed);
    const std::vector<Block> after(growing.blocks().begin(), growing.blocks().begin() + static_cast<long>(closed));
    ASSERT_TRUE(same(before, after)) << "closed blocks changed at byte " << n;
  }
  EXPECT_TRUE(same(growing.blocks(), whole.blocks()));
  EXPECT_TRUE(same(whole.blocks(), parse_markdown(source))) << "cut into closed pieces it means the same";
  EXPECT_GT(growing.closed(), 8u) << "only the tail is parsed again";
}

TEST(Markdown, OnlyTheTailIsOpen) {
  const std::string text = "One\n\nTwo\n\n```\ncode\n\nmore\n";
  EXPECT_EQ(open_tail(text, 0), text.find("```"));  // an empty line inside code ends no block
  EXPECT_EQ(open_tail("- a\n\n  more of a\n\n- b", 0), 18u);
  EXPECT_EQ(open_tail("One\n\n", 0), 0u) << "what comes next may be indented";
}

TEST(Markdown, StrangeTextIsShownAndNeverLost) {
  const std::string deep(3000, '>');
  std::string nested;
  for (int i = 0; i < 500; ++i) nested += std::string(static_cast<size_t>(i) * 2, ' ') + "- x\n";
  for (const std::string& text :
       {std::string("<script>alert(1)</script>"), std::string("***"), std::string("[](<"), deep + " x", nested,
        std::string("a\0b", 3), std::string("| a |\n|--"), std::string("\xff\xfe not UTF-8"), std::string("```"),
        std::string("&#0; &#xD800;")}) {
    const std::vector<Block> blocks = parse_markdown(text);
    for (const Block& block : blocks) {
      size_t at = 0;
      for (const TextRun& run : block.runs) {
        EXPECT_EQ(run.begin, at) << text.substr(0, 40);
        at = run.end;
      }
      EXPECT_EQ(at, block.text.size());
    }
  }
  EXPECT_EQ(parse_markdown("<b>x</b>").at(0).text, "<b>x</b>");
}

}  // namespace
}  // namespace canopy::app
