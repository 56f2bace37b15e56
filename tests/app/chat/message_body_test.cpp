// Laid-out messages: formulas, and what scrolls sideways. Where the bytes of the text are must stay right in both.

#include "app/chat/message_body.h"

#include <gtest/gtest.h>
#include <imgui_internal.h>

#include <algorithm>
#include <string>
#include <vector>

#include "app/chat/maths_check.h"
#include "tests/app/support/ui_harness.h"

namespace canopy::test {
namespace {

app::Message reply_of(const std::string& text) {
  app::Message message;
  message.role = app::Role::assistant;
  message.text = text;
  return message;
}

std::vector<ImRect> rects_of(const app::MessageBody& body, size_t from, size_t to) {
  std::vector<ImRect> rects;
  body.rects({0, 0}, from, to, [&](ImVec2 a, ImVec2 b) { rects.emplace_back(a, b); });
  return rects;
}

TEST(MessageBody, AFormulaCoversTheBytesOfItsSource) {
  UiHarness ui;
  ASSERT_TRUE(ui.run([&](ImGuiTestContext*) {
    const std::string text = "The root $\\frac{1}{\\sqrt{x}}$ of it";
    const app::Message message = reply_of(text);
    app::MessageBody body, plain;
    body.layout(message, 600);
    plain.layout(reply_of("The root of it"), 600);
    EXPECT_GT(body.height(), plain.height()) << "the fraction needs a higher line";
    const size_t begin = text.find("\\frac"), end = text.find("$ of");
    const auto before = rects_of(body, 0, begin - 1), whole = rects_of(body, begin, end),
               behind = rects_of(body, end + 1, text.size());
    ASSERT_EQ(before.size(), 1u);
    ASSERT_EQ(whole.size(), 1u);
    ASSERT_EQ(behind.size(), 1u);
    EXPECT_LE(before[0].Max.x, whole[0].Min.x + 1);
    EXPECT_LE(whole[0].Max.x, behind[0].Min.x + 1);
    EXPECT_LT(whole[0].GetWidth(), 60.0f) << "no wider than it is typeset";
    EXPECT_GT(whole[0].GetHeight(), before[0].GetHeight());
    float at = whole[0].Min.x;
    for (size_t byte = begin; byte < end; ++byte) {  // each byte has its part, in order
      const auto part = rects_of(body, byte, byte + 1);
      ASSERT_EQ(part.size(), 1u);
      EXPECT_NEAR(part[0].Min.x, at, 0.01f);
      EXPECT_GT(part[0].GetWidth(), 0.0f);
      EXPECT_EQ(body.byte_at({part[0].Min.x + part[0].GetWidth() * 0.25f, part[0].GetCenter().y}, {0, 0}), byte);
      at = part[0].Max.x;
    }
  }));
}

TEST(MessageBody, AFormulaIsNeverDividedAndFitsItsLine) {
  UiHarness ui;
  ASSERT_TRUE(ui.run([&](ImGuiTestContext*) {
    const std::string words = "Some words before it stand here ", tex = "a + b + c + d = e + f";
    const app::Message message = reply_of(words + "$" + tex + "$ and behind it.");
    for (float width = 60; width < 500; width += 7) {
      app::MessageBody body;
      body.layout(message, width);
      const auto rects = rects_of(body, words.size() + 1, words.size() + 1 + tex.size());
      ASSERT_EQ(rects.size(), 1u) << width;
      EXPECT_LE(rects[0].Max.x, width + 1);
    }
  }));
}

TEST(MessageBody, WhatCannotBeTypesetIsShownAsItsSource) {
  UiHarness ui;
  ASSERT_TRUE(ui.run([&](ImGuiTestContext*) {
    for (const char* tex :
         {"\\nosuchcommand{x}", "\\frac{a", "a}", "\\def\\a{\\a}\\a", "\\begin{foo}x\\end{foo}", "\\left(x",
          "\\rule{9999em}{9999em}", "x^", "\\input{/etc/passwd}", "\\mathrel{}", "\\frac"})
      EXPECT_EQ(app::typeset(tex, true), nullptr) << tex;
    EXPECT_EQ(app::typeset(std::string(1000, '{') + "x" + std::string(1000, '}'), true), nullptr);
    for (const char* tex :
         {"x", "\\frac12", "e^{i\\pi}+1=0", "\\begin{pmatrix}a&b\\\\c&d\\end{pmatrix}", "a &= b \\\\ c &= d",
          "\\begin{align*}a&=b \\tag{1}\\\\&=c\\end{align*}", "\\left\\{ x \\middle| y \\right\\}", "\\sqrt[3]{x}",
          "\\text{if } x \\in \\mathbb{R}^{n\\times m}",
          "\\operatorname{softmax}\\left(\\frac{QK^\\top}{\\sqrt{d_k}}\\right)V", "\\sum_{i=1}^{n} x_i \\, dx",
          "\\left\\| x \\right\\|", "\\argmin_x f(x)", "\\boxed{x}", "50\\%", "f'(x)", "\\text{\u0416}"}) {
      const auto maths = app::typeset(tex, true);
      ASSERT_NE(maths, nullptr) << tex;
      EXPECT_GT(maths->width, 0.0f) << tex;
      EXPECT_FALSE(maths->letters.empty() && maths->words.empty()) << tex;
    }
    const std::string text = "So $\\nosuchcommand{x}$ there";
    app::MessageBody body;
    body.layout(reply_of(text), 600);
    const auto source = rects_of(body, text.find('\\'), text.find("$ there"));
    ASSERT_EQ(source.size(), 1u);
    EXPECT_GT(source[0].GetWidth(), 100.0f);
  }));
}

TEST(MathsCheck, OnlyWholeFormulasOfKnownCommandsPass) {
  for (const char* tex : {"",
                          "{",
                          "}",
                          "\\",
                          "a & b",
                          "\\frac{a}",
                          "\\frac{a}{}",
                          "\\sqrt[",
                          "\\right)",
                          "\\left( } \\right)",
                          "\\begin{array}{zz}x\\end{array}",
                          "\\begin{array}x\\end{array}",
                          "\\end{array}",
                          "50%",
                          "#1",
                          "a$b",
                          "\xff",
                          "\\newcommand{\\a}{b}",
                          "\\includegraphics{a}",
                          "\\hspace{9cm}",
                          "\\middle|",
                          "x^^"})
    EXPECT_FALSE(app::is_whole_formula(tex)) << tex;
  for (const char* tex :
       {"x", "{}^{14}C", "\\frac 1 2", "x^\\alpha_{i}", "\\big( x \\Big]", "\\color{red} x", "\\, \\{ \\}"})
    EXPECT_TRUE(app::is_whole_formula(tex)) << tex;
}

TEST(MessageBody, LongLinesOfCodeAreNotWrappedButScrolled) {
  UiHarness ui;
  ASSERT_TRUE(ui.run([&](ImGuiTestContext*) {
    std::string line;
    for (int i = 0; i < 60; ++i) line += "word" + std::to_string(i) + " ";
    const std::string text = "```\n" + line + "end\n```\n\nBelow it.";
    app::MessageBody body, narrow;
    narrow.layout(reply_of("```\nend\n```\n\nBelow it."), 300);
    body.layout(reply_of(text), 300);
    EXPECT_LT(body.height(), narrow.height() + 20) << "one line, and the bar";
    EXPECT_LE(body.widest(), 300.0f);
    const size_t at = text.find("end\n");
    auto rects = rects_of(body, at, at + 3);
    ASSERT_EQ(rects.size(), 1u) << "a hit that cannot be seen has its height";
    EXPECT_EQ(rects[0].GetWidth(), 0.0f);
    EXPECT_LE(rects[0].Max.x, 300.0f);
    body.reveal(at, at + 3);
    rects = rects_of(body, at, at + 3);
    ASSERT_EQ(rects.size(), 1u);
    EXPECT_GT(rects[0].GetWidth(), 10.0f);
    EXPECT_LE(rects[0].Max.x, 300.0f);
    EXPECT_EQ(body.byte_at({rects[0].Min.x + 1, rects[0].GetCenter().y}, {0, 0}), at);
    EXPECT_EQ(rects_of(body, 4, 8).at(0).GetWidth(), 0.0f) << "the beginning is out of view now";
    body.reveal(4, 8);
    EXPECT_GT(rects_of(body, 4, 8).at(0).GetWidth(), 10.0f);
  }));
}

TEST(MessageBody, AWideTableScrollsAndANarrowOneDoesNot) {
  UiHarness ui;
  ASSERT_TRUE(ui.run([&](ImGuiTestContext*) {
    std::string head = "|", rule = "|", row = "|";
    for (int i = 0; i < 8; ++i) {
      head += " head " + std::to_string(i) + " |";
      rule += "---|";
      row += " some longer words in cell " + std::to_string(i) + " |";
    }
    const std::string text = head + "\n" + rule + "\n" + row;
    app::MessageBody body;
    body.layout(reply_of(text), 320);
    const size_t last = text.rfind("cell 7");
    EXPECT_EQ(rects_of(body, last, last + 6).at(0).GetWidth(), 0.0f);
    body.reveal(last, last + 6);
    EXPECT_GT(rects_of(body, last, last + 6).at(0).GetWidth(), 10.0f);
    body.layout(reply_of(text), 4000);
    EXPECT_GT(rects_of(body, last, last + 6).at(0).GetWidth(), 10.0f);
    EXPECT_GT(rects_of(body, 2, 6).at(0).GetWidth(), 10.0f) << "what was scrolled is not, where all fits";
  }));
}

constexpr const char* kMixed = "abc \u05d0\u05d1 \u05d2\u05d3 xyz";

TEST(MessageBody, WordsFromRightToLeftStandWhereTheyAreRead) {
  UiHarness ui;
  ASSERT_TRUE(ui.run([&](ImGuiTestContext*) {
    const std::string text = kMixed;
    app::MessageBody body;
    body.layout(reply_of(text), 600);
    const auto of = [&](const char* letters) {
      const size_t at = text.find(letters);
      const auto rects = rects_of(body, at, at + std::string(letters).size());
      EXPECT_EQ(rects.size(), 1u) << letters;
      return rects.empty() ? ImRect() : rects[0];
    };
    EXPECT_LT(of("\u05d1").Min.x, of("\u05d0").Min.x) << "within a word";
    EXPECT_LT(of("\u05d3").Min.x, of("\u05d0\u05d1").Min.x) << "and the words among themselves";
    EXPECT_LE(of("abc").Max.x, of("\u05d3").Min.x + 1);
    EXPECT_LE(of("\u05d0").Max.x, of("xyz").Min.x + 1);
    EXPECT_EQ(rects_of(body, 0, text.find("\u05d1")).size(), 2u) << "a part of the line that is in two places";
    EXPECT_EQ(rects_of(body, text.find("\u05d0"), text.find(" xyz")).size(), 1u);
  }));
}

TEST(MessageBody, PointsAndLettersBelongToEachOtherInBothDirections) {
  UiHarness ui;
  ASSERT_TRUE(ui.run([&](ImGuiTestContext*) {
    const std::string text = std::string(kMixed) + " **\u05d4\u05d5** (1) `\u05d6` end\n\n\u05d0 abc \u05d1 34 \u05d2.";
    for (const float width : {600.0f, 90.0f}) {
      app::MessageBody body;
      body.layout(reply_of(text), width);
      for (size_t byte = 0; byte < text.size(); ++byte) {
        if ((static_cast<unsigned char>(text[byte]) & 0xC0) == 0x80) continue;
        size_t next = byte + 1;
        while (next < text.size() && (static_cast<unsigned char>(text[next]) & 0xC0) == 0x80) ++next;
        const auto rects = rects_of(body, byte, next);
        if (rects.size() != 1 || rects[0].GetWidth() <= 0) continue;
        // The half where it begins, as it is read, is its own.
        const float quarter = rects[0].GetWidth() * 0.25f, y = rects[0].GetCenter().y;
        const size_t left = body.byte_at({rects[0].Min.x + quarter, y}, {0, 0});
        const size_t right = body.byte_at({rects[0].Max.x - quarter, y}, {0, 0});
        EXPECT_TRUE(left == byte || right == byte) << byte << " at " << width;
      }
    }
  }));
}

TEST(MessageBody, LinesAreWrappedAsTheyAreStoredAndThenPutInOrder) {
  UiHarness ui;
  ASSERT_TRUE(ui.run([&](ImGuiTestContext*) {
    std::string text;
    for (int i = 0; i < 12; ++i) text += "\u05d0\u05d1\u05d2 ";
    app::MessageBody body;
    body.layout(reply_of(text), 200);
    const auto word = [&](size_t i) { return rects_of(body, i * 7, i * 7 + 6).at(0); };
    EXPECT_GT(body.height(), 40.0f);
    EXPECT_NEAR(word(0).Max.x, 200, 1) << "such a paragraph begins at the right";
    for (size_t i = 1; i < 12; ++i) {
      const bool same_line = word(i).Min.y == word(i - 1).Min.y;
      EXPECT_TRUE(same_line ? word(i).Max.x <= word(i - 1).Min.x : word(i).Min.y > word(i - 1).Min.y) << i;
      EXPECT_GE(word(i).Min.x, 0);
    }
    app::Message asked = reply_of("\u05d0\u05d1");
    asked.role = app::Role::user;
    app::MessageBody bubble;
    bubble.layout(asked, 200);
    EXPECT_LT(bubble.widest(), 100.0f) << "a short question has a small bubble";
  }));
}

TEST(MessageBody, CodeIsReadFromLeftToRight) {
  UiHarness ui;
  ASSERT_TRUE(ui.run([&](ImGuiTestContext*) {
    const std::string text = "```\n\u05d0\u05d1 = f(1)\n```\n";
    app::MessageBody body;
    body.layout(reply_of(text), 600);
    const size_t name = text.find("\u05d0"), call = text.find("f(1)");
    EXPECT_LT(rects_of(body, name, name + 4).at(0).Max.x, rects_of(body, call, call + 4).at(0).Min.x);
    EXPECT_LT(rects_of(body, name + 2, name + 4).at(0).Min.x, rects_of(body, name, name + 2).at(0).Min.x)
        << "a word in it still is not";
  }));
}

TEST(MessageBody, NamesTheLettersThatNoFontHas) {
  UiHarness ui;
  ASSERT_TRUE(ui.run([&](ImGuiTestContext*) {
    app::MessageBody body;
    body.layout(reply_of("\u4f60 a \u4f60 \u200d \u3000 **\U0001F600**"), 600);
    EXPECT_EQ(body.missing(), (std::vector<uint32_t>{0x4F60, 0x1F600})) << "each once, and nothing that is not seen";
  }));
}

/// The bars below wide code in the chat.
std::vector<ImRect> sideways_bars(ImGuiTestContext* ctx) {
  ImGuiTestItemList all;
  ctx->GatherItems(&all, ctx->WindowInfo("//Chat/Messages").ID, 8);
  std::vector<ImRect> found;
  for (const ImGuiTestItemInfo& item : all)
    if (std::string("Scroll sideways") == item.DebugLabel) found.push_back(item.RectFull);
  return found;
}

TEST(MessageBody, CodeScrollsByWheelAndBarAndIsSelectedWhereItIs) {
  UiHarness ui;
  std::string line = "first";
  for (int i = 0; i < 80; ++i) line += " middle" + std::to_string(i);
  ui.engine().script = answers_with({"Look, $\\frac{a}{b}$:\n\n```cpp\n" + line + " lastword\n```\n"});
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    ui.app().run(app::OpenModel{"/models/a.gguf"});
    ctx->Yield(3);
    ctx->KeyChars("Code");
    ctx->KeyPress(ImGuiKey_Enter);
    ctx->Yield(4);
    const auto bars = sideways_bars(ctx);
    IM_CHECK_EQ(bars.size(), 1u);
    const ImRect bar = bars[0];
    const float y = bar.Min.y - 19;  // of the line of code
    const auto word_at = [&](float x) {
      ctx->MouseMoveToPos({x, y});
      ctx->MouseDoubleClick();
      ctx->KeyPress(ImGuiMod_Ctrl | ImGuiKey_C);
      ctx->Yield(2);
      return std::string(ImGui::GetClipboardText());
    };
    IM_CHECK_STR_EQ(word_at(bar.Min.x + 4).c_str(), "first");
    ctx->MouseWheelX(-1000);
    ctx->Yield(2);
    IM_CHECK_STR_EQ(word_at(bar.Max.x - 12).c_str(), "lastword");
    ctx->MouseMoveToPos({bar.Max.x - 8, bar.GetCenter().y});
    ctx->MouseDown();
    ctx->MouseMoveToPos({bar.Min.x - 40, bar.GetCenter().y});
    ctx->MouseUp();
    ctx->Yield(2);
    IM_CHECK_STR_EQ(word_at(bar.Min.x + 4).c_str(), "first");
    // By keys, whether the mouse is on it or not.
    for (const bool on_it : {true, false}) {
      if (!on_it) ctx->MouseMoveToPos({4, 4});
      ctx->KeyPress(ImGuiMod_Alt | ImGuiKey_RightArrow, 100);
      ctx->Yield(2);
      IM_CHECK_STR_EQ(word_at(bar.Max.x - 12).c_str(), "lastword");
      if (!on_it) ctx->MouseMoveToPos({4, 4});
      ctx->KeyPress(ImGuiMod_Alt | ImGuiKey_LeftArrow, 100);
      ctx->Yield(2);
      IM_CHECK_STR_EQ(word_at(bar.Min.x + 4).c_str(), "first");
    }
  }));
}

TEST(MessageBody, TheKeysOfWideCodeLeaveTheCursorOfWhatIsTyped) {
  UiHarness ui;
  ui.engine().script = answers_with({"Yes."});
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    ui.app().run(app::OpenModel{"/models/a.gguf"});
    ctx->Yield(3);
    ctx->KeyChars("First");
    ctx->KeyPress(ImGuiKey_Enter);
    ctx->Yield(4);
    ctx->KeyChars("ab");
    ctx->KeyPress(ImGuiMod_Alt | ImGuiKey_LeftArrow);
    ctx->KeyChars("c");
    ctx->KeyPress(ImGuiKey_Enter);
    ctx->Yield(4);
    IM_CHECK_EQ(ui.view().messages.size(), 4u);
    IM_CHECK_STR_EQ(ui.view().messages[2].text.c_str(), "abc");
  }));
}

}  // namespace
}  // namespace canopy::test
