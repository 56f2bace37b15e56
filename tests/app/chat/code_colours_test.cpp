// Which parts of code are what, code that grows, and the colours in all themes.

#include "app/chat/code_colours.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/app/ui/colour_math.h"

namespace canopy::app {
namespace {

/// Each byte of the code as a letter for its kind; '.' is plain.
std::string kinds(const std::string& language, const std::string& code) {
  CodeColours colours;
  colours.update(code, language);
  std::string out(code.size(), '.');
  for (const CodeRun& run : colours.runs())
    for (uint32_t i = run.begin; i < run.end; ++i) out[i] = ".ktsncfa+-"[static_cast<int>(run.kind)];
  return out;
}

TEST(CodeColours, WordsAndMarksOfEachLanguage) {
  struct Case {
    const char *language, *code, *kinds;
  };
  const Case cases[] = {
      {"cpp", "int f = 0x1F; // c", "ttt.....nnnn..cccc"},
      {"C++", "return g(\"a\\\"b\");", "kkkkkk.f.ssssss.."},
      {"c", "#include <a.h>", "kkkkkkkk.sssss"},
      {"c", "/* a\nb */ if", "cccc.cccc.kk"},
      {"python", "@d\ndef f(x): # c", "aa.kkk.f.....ccc"},
      {"py", "s = f\"{x}\" + 'y'", "....ssssss...sss"},
      {"python", "\"\"\"a\nb\"\"\" or 1.5e-3", "ssss.ssss.kk.nnnnnn"},
      {"js", "const a = `x\ny` + null;", "kkkkk.....ss.ss...nnnn."},
      {"typescript", "let x: string;", "kkk....tttttt."},
      {"json", "{\"a\": [1, true, \"b\"]}", ".aaa...n..nnnn..sss.."},
      {"html", "<a href=\"x\">T &amp; U</a>", "kk.aaaa.sssk..nnnnn..kkkk"},
      {"css", "a:hover { color: #fff; } /* c */", "..........aaaaa..nnnn....ccccccc"},
      {"bash", "for f in $x; do ls # c", "kkk...kk.aa..kk.tt.ccc"},
      {"go", "func f() { x := 12 }", "kkkk.f..........nn.."},
      {"java", "class Foo { int x; }", "kkkkk.ttt...ttt....."},
      {"c#", "var s = true;", "ttt.....nnnn."},
      {"sql", "SELECT a FROM b -- c", "kkkkkk...kkkk...cccc"},
      {"yaml", "key: \"v\" # c\n- n: 1", "aaa..sss.ccc...a..n"},
      {"toml", "[s]\na = 1 # c", "ttt.a...n.ccc"},
      {"diff", "-a\n+b\n c\n@@ x", "--.++....kkkk"},
      {"lua", "--[[ a\nb]] local x = \"s\"", "cccccc.ccc.kkkkk.....sss"},
  };
  for (const Case& each : cases)
    EXPECT_EQ(kinds(each.language, each.code), each.kinds) << each.language << ": " << each.code;
  EXPECT_EQ(kinds("rust", "&'a u8 'c'"), ".tt.tt.sss") << "a lifetime is no string";
  EXPECT_EQ(kinds("", "if x"), "....");
  EXPECT_EQ(kinds("brainfuck", "if x"), "....");
}

TEST(CodeColours, GrownByteByByteItIsAsTheWhole) {
  const std::string code = "/* a\n b */ int x = \"s\"; // c\n\"\"\"\nauto y = 'c';\n#if 1\n";
  for (const char* language : {"cpp", "python", "html", "bash", "rust", "toml", "yaml", "diff", "json", "css", "lua"}) {
    CodeColours growing;
    for (size_t n = 0; n <= code.size(); ++n) {
      growing.update(std::string_view(code).substr(0, n), language);
      CodeColours whole;
      whole.update(std::string_view(code).substr(0, n), language);
      ASSERT_EQ(growing.runs().size(), whole.runs().size()) << language << " at " << n;
      for (size_t i = 0; i < whole.runs().size(); ++i) {
        EXPECT_EQ(growing.runs()[i].begin, whole.runs()[i].begin);
        EXPECT_EQ(growing.runs()[i].end, whole.runs()[i].end);
        EXPECT_EQ(growing.runs()[i].kind, whole.runs()[i].kind);
      }
    }
  }
}

TEST(CodeColours, OtherCodeOrLanguageBeginsAnew) {
  CodeColours colours;
  colours.update("/* open\nmore", "c");
  colours.update("int x;\nint y;", "c");
  ASSERT_EQ(colours.runs().size(), 2u);
  EXPECT_EQ(colours.runs()[0].kind, CodeKind::type);
  colours.update("int x;\nint y;", "nothing");
  EXPECT_TRUE(colours.runs().empty());
}

TEST(CodeColours, AnyBytesAreLookedAtOnceAndInOrder) {
  std::string code;
  for (unsigned i = 0; i < 60'000; ++i) code += static_cast<char>(i * 2654435761u >> 13);
  code += std::string(50'000, '&') + std::string(50'000, '\'') + std::string(50'000, '[') + std::string(50'000, '\\');
  for (const char* language : {"cpp", "python", "js", "json", "html", "css", "bash", "rust", "go", "java", "c#", "sql",
                               "yaml", "toml", "diff", "lua", "php"}) {
    CodeColours colours;
    colours.update(code, language);
    uint32_t at = 0;
    for (const CodeRun& run : colours.runs()) {
      ASSERT_GE(run.begin, at) << language;
      ASSERT_GT(run.end, run.begin) << language;
      at = run.end;
    }
    ASSERT_LE(at, code.size()) << language;
  }
}

TEST(CodeColours, AllAreReadableInEveryTheme) {
  for (const ThemeKind kind : {ThemeKind::dark, ThemeKind::light, ThemeKind::projector}) {
    const Theme& t = theme(kind);
    for (int i = 0; i <= static_cast<int>(CodeKind::removed); ++i) {
      const Colour colour = code_colour(t, static_cast<CodeKind>(i));
      EXPECT_GE(test::contrast(colour, t.canvas), 4.5) << "theme " << static_cast<int>(kind) << ", kind " << i;
      // On the ground of a guessed word, too.
      EXPECT_GE(test::contrast(colour, t.accepted_bg), 3.0) << "theme " << static_cast<int>(kind) << ", kind " << i;
    }
  }
}

}  // namespace
}  // namespace canopy::app
