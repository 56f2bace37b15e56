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

std::string kinds_of(const std::vector<Block>& blocks) {
  std::string kinds;
  for (const Block& block : blocks) kinds += "phcrtf"[static_cast<int>(block.kind)];
  return kinds;
}

/// The formulas of a text, each in brackets.
std::string formulas(std::string_view text, bool growing = false) {
  std::string out;
  for (const Block& block : parse_markdown(text, 0, growing))
    for (const TextRun& run : block.runs)
      if (run.style & kMaths) out += "[" + block.text.substr(run.begin, run.end - run.begin) + "]";
  return out;
}

TEST(Markdown, FormulasAreFoundBetweenTheirDelimitersWithAllBackslashes) {
  EXPECT_EQ(formulas(R"(So $a_1 + b$ and \(x\,\*y\*\), **$z$**.)"), R"([a_1 + b][x\,\*y\*][z])");
  EXPECT_EQ(formulas("\\[\na \\\\ b\n- c\n= d\n\\] then $$\\frac12$$"), "[a \\\\ b\n- c\n= d][\\frac12]");
  EXPECT_EQ(formulas("\\begin{align*}\na &= b\n\\end{align*}"), "[\\begin{align*}\na &= b\n\\end{align*}]");
  EXPECT_EQ(formulas("| a | b |\n|---|---|\n| $|x|$ | y |"), "[|x|]");
  EXPECT_EQ(formulas("- item\n\n  $$x$$\n\n> \\[y\\]"), "[x][y]");
  EXPECT_EQ(parse_markdown("a $x$ b").at(0).text, "a x b");
  EXPECT_EQ(parse_markdown("An escaped \\$x\\$").at(0).text, "An escaped $x$");
}

TEST(Markdown, PricesAndCodeAreNoFormulas) {
  for (const char* text :
       {"It costs $5 and $6.", "From $5 to $10, or US$7", "$HOME/bin:$PATH", "$5 for the first and 7$ more",
        "a $ b $ c", "`$x$` and ``\\(y\\)``", "```\n$x$ \\[y\\]\n$$\nz\n$$\n```", "    $x$",
        "- ```sh\n  echo $a$\n  ```", "\\\\(x\\\\)", "$x\n\n$y"}) {
    EXPECT_EQ(formulas(text), "") << text;
  }
  EXPECT_EQ(parse_markdown("`$x$ \\(y\\)`").at(0).text, "$x$ \\(y\\)");
  EXPECT_EQ(parse_markdown("```\n\\[a\n- b\\]\n```").at(0).text, "\\[a\n- b\\]");
}

TEST(Markdown, AFormulaOfItsOwnLineDividesItsParagraph) {
  const std::string source = "With\n\\[ x^2 \\]\nwhere **x** is $y$, $$z$$\n\n- item $$q$$ more";
  const std::vector<Block> blocks = parse_markdown(source);
  EXPECT_EQ(kinds_of(blocks), "pfpfpfp");
  EXPECT_EQ(blocks[0].text, "With");
  EXPECT_EQ(blocks[1].text, "x^2");
  EXPECT_EQ(blocks[2].text, "where x is y,");
  EXPECT_EQ(blocks[4].marker, "\u2022");
  EXPECT_EQ(blocks[5].indent, 1);
  EXPECT_EQ(blocks[5].marker, "");
  EXPECT_EQ(blocks[6].text, "more");
  EXPECT_EQ(blocks[1].source_begin, source.find("x^2"));
  EXPECT_EQ(blocks[1].source_end, source.find("x^2") + 3);
  EXPECT_EQ(kinds_of(parse_markdown("# Heading $$x$$\n\n[a $$x$$ b](c)")), "hp") << "these cannot be divided";
}

TEST(Markdown, FootnotesBreaksAndLinksOfAllKinds) {
  const std::string source =
      "A claim[^1] and more[^note].\n\n[^1]: Its **reason**.\n[^note]: https://example.org/x\n\n"
      "one<br>two <BR/> www.example.org and me@example.org ![](y.png) [![alt](a.png) text](b)";
  const std::vector<Block> blocks = parse_markdown(source);
  ASSERT_EQ(blocks.size(), 4u);
  EXPECT_EQ(blocks[0].text, "A claim1 and morenote.");
  EXPECT_TRUE(blocks[0].runs[1].style & kNote);
  EXPECT_EQ(blocks[1].marker, "1.");
  EXPECT_EQ(blocks[1].text, "Its reason.");
  EXPECT_EQ(blocks[1].indent, 1);
  EXPECT_EQ(blocks[2].marker, "\u2020");
  EXPECT_EQ(blocks[2].text, "note https://example.org/x");
  EXPECT_EQ(blocks[3].text, "one\ntwo \n www.example.org and me@example.org image alt text");
  ASSERT_EQ(blocks[3].links.size(), 5u);
  EXPECT_EQ(blocks[3].links[0], "http://www.example.org");
  EXPECT_EQ(blocks[3].links[1], "mailto:me@example.org");
  EXPECT_EQ(blocks[3].links[2], "y.png");
  EXPECT_EQ(blocks[3].runs.back().link, 3) << "the words behind an image in a link are of the link";
}

TEST(Markdown, QuotesAndListsInEachOtherKeepTheirOrder) {
  const std::vector<Block> blocks = parse_markdown("> a\n> - b\n>\n> c\n\n1. d\n   > e\n   >\n   > f\n\n> g");
  std::string around;
  for (const Block& block : blocks) around += block.around + std::to_string(block.shared) + " ";
  EXPECT_EQ(around, "q0 ql1 q1 l0 lq1 lq2 q0 ");
}

constexpr const char* kMore =
    "# Title\n\nSome **bold words**, *soft `code` ones*, ~~gone~~ and [a link](https://example.org/x).\nA line\n\n"
    "- one **two**\n- [x] three\n\n| a | **b** |\n|---|--:|\n| left | $\\pi_1$ |\n\n---\n\n"
    "Text \\(a + b\\) and\n\\[\n\\frac{1}{2} = c\n\\]\nthen.\n\n```python\nprint(1)\n```\n\n> quoted\n\nThe end.";

// Each token of a reply is shown as it comes: marks whose end is missing must not flash, nor words go away again.
TEST(Markdown, GrowingTextShowsNoMarksAndLosesNoWords) {
  const std::string source = kMore;
  std::string before;
  for (size_t n = 1; n <= source.size(); ++n) {
    MarkdownText text;
    text.update(std::string_view(source).substr(0, n), true);
    std::string shown;
    for (const Block& block : text.blocks())
      if (block.kind != Kind::formula)
        for (const char c : block.text)
          if (c != '\n' && c != ' ') shown += c;
    for (const char* mark : {"**", "~~", "](", "`", "|", "---", "#", "\\("})
      EXPECT_EQ(shown.find(mark), std::string::npos) << mark << " at byte " << n << ": " << shown;
    // A bracket may be the begin of a link, whose words are then the same without it.
    const bool bracket = before.find('[') != std::string::npos;
    EXPECT_TRUE(bracket || shown.starts_with(before)) << "at byte " << n << "\n" << before << "\n" << shown;
    before = shown;
  }
  MarkdownText text;
  text.update(source, true);
  text.update(source, false);
  EXPECT_TRUE(same(text.blocks(), parse_markdown(source))) << "once it has ended, only what it says counts";
}

TEST(Markdown, ATableIsOneFromItsFirstLineOn) {
  EXPECT_EQ(kinds_of(parse_markdown("| a | b", 0, true)), "t");
  EXPECT_EQ(parse_markdown("| a | b |\n|--", 0, true).at(0).columns, 2u);
  EXPECT_EQ(kinds_of(parse_markdown("Words\n--", 0, true)), "p") << "no heading for a moment";
  EXPECT_EQ(kinds_of(parse_markdown("```\n| a\n--", 0, true)), "c");
  EXPECT_EQ(parse_markdown("```\n| a\n--", 0, true).at(0).text, "| a\n--");
}

TEST(Markdown, AFormulaIsUnendedUntilItsEndHasCome) {
  for (const char* text : {"So \\(a + b", "So $$a + b$", "So $a_1 + b", "So \\[ a + b \\"}) {
    const std::vector<Block> blocks = parse_markdown(text, 0, true);
    const TextRun& run = blocks.back().runs.back();
    EXPECT_TRUE(run.style & kMaths && run.style & kUnended) << text;
    EXPECT_TRUE(blocks.back().text.ends_with("+ b")) << blocks.back().text;
  }
  EXPECT_EQ(formulas("It costs $5", true), "");
  EXPECT_EQ(formulas("So $a_1 + b"), "") << "what has ended without it is none";
}

// A model that repeats itself may open a thousand formulas and end none.
TEST(Markdown, FormulasWithoutEndTakeNoLongerThanTheirLength) {
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += "\\(a $$ `b [^c ";
  text += "\n\nEnd";
  EXPECT_GE(parse_markdown(text).size(), 2u);
  EXPECT_GE(parse_markdown(text, 0, true).size(), 2u);
}

TEST(Markdown, StrangeTextIsShownAndNeverLost) {
  const std::string deep(3000, '>');
  std::string nested;
  for (int i = 0; i < 500; ++i) nested += std::string(static_cast<size_t>(i) * 2, ' ') + "- x\n";
  for (const std::string& text :
       {std::string("<script>alert(1)</script>"), std::string("***"), std::string("[](<"), deep + " x", nested,
        std::string("a\0b", 3), std::string("| a |\n|--"), std::string("\xff\xfe not UTF-8"), std::string("```"),
        std::string("&#0; &#xD800;"), std::string("\\("), std::string("$$"), std::string("[^]: [^a]:"),
        std::string("> $$a\n> b$$ <br>"), std::string("- \\[x\\]"), std::string("[^1]: ```\n$x$")}) {
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
