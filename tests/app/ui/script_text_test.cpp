// Text of all scripts as Dear ImGui draws it, with the fonts of the system and without.

#include "app/ui/script_text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "app/platform/imgui_context.h"
#include "app/platform/system_fonts.h"
#include "app/ui/look.h"
#include "tests/app/support/test_engine.h"

namespace canopy::test {
namespace {

using app::Type;

/// A context with the program's fonts, in the middle of a frame.
class Typeset {
 public:
  explicit Typeset(bool system_fonts) {
    if (system_fonts) app::wait_for_system_fonts();
    ImGuiIO& io = ImGui::GetIO();
    io.DisplaySize = {800, 600};
    io.IniFilename = nullptr;
    io.BackendFlags |= ImGuiBackendFlags_RendererHasTextures;
    io.UserData = &look_;
    look_.fonts = app::load_fonts(system_fonts);
    look_.theme = &app::theme(app::ThemeKind::dark);
    ImGui::NewFrame();
  }
  ~Typeset() {
    ImGui::Render();
    accept_textures();
    drop_textures();
  }

  /// The left edges of the glyphs of a line, in the order in which they were drawn.
  std::vector<float> edges(Type type, const std::string& text) {
    ImDrawList* list = ImGui::GetForegroundDrawList();
    const int first = list->VtxBuffer.Size;
    app::draw_text(list, {10, 10}, type, 0xFFFFFFFF, text);
    std::vector<float> found;
    for (int i = first; i < list->VtxBuffer.Size; i += 4) found.push_back(list->VtxBuffer[i].pos.x);
    return found;
  }
  ImFontGlyph* glyph(Type type, char32_t c) {
    return app::font_of(type)->GetFontBaked(app::text_height(type))->FindGlyph(static_cast<ImWchar>(c));
  }

 private:
  app::ImguiContext context_;
  app::Look look_;
};

TEST(ScriptText, WhatNoFontHasIsABoxWithItsCode) {
  Typeset typeset(false);
  for (const Type type : {Type::chat, Type::mono, Type::title}) {
    EXPECT_TRUE(app::has_glyph(app::font_of(type), U'a'));
    for (const char32_t c : {U'\u4f60', U'\u05d0', U'\U0001F600', U'\ue123'}) {
      EXPECT_FALSE(app::has_glyph(app::font_of(type), c));
      const ImFontGlyph* box = typeset.glyph(type, c);
      ASSERT_TRUE(box->Visible);
      EXPECT_EQ(box->Codepoint, static_cast<unsigned>(c)) << "not that of '?'";
      EXPECT_GE(box->X1 - box->X0, 11) << "a code can be read";
      EXPECT_GT(box->AdvanceX, box->X1);
    }
  }
  EXPECT_EQ(typeset.glyph(Type::chat, U'\u200d')->AdvanceX, 0) << "a joiner is nothing to see";
}

TEST(ScriptText, WordsFromRightToLeftAreDrawnInTheirOrder) {
  Typeset typeset(false);
  const std::string text = "a \u05d0\u05d1 b";
  const float width = app::text_size(Type::chat, text).x;
  const std::vector<float> edges = typeset.edges(Type::chat, text);
  ASSERT_EQ(edges.size(), 4u) << "blanks are not drawn";
  EXPECT_TRUE(std::is_sorted(edges.begin(), edges.end()));
  EXPECT_LT(edges.back(), 10 + width);
  EXPECT_EQ(app::text_size(Type::chat, "\u05d0\u05d1").x,
            app::text_size(Type::chat, "\u05d0").x + app::text_size(Type::chat, "\u05d1").x);
}

TEST(ScriptText, JoinedLettersTakeTheRoomOfTheirForms) {
  if (!app::system_face(U'\u0628')) GTEST_SKIP() << "no font for it is installed: fonts-noto-core";
  Typeset typeset(true);
  const std::string letter = "\u0628", word = letter + letter + letter;
  const float joined = app::text_size(Type::chat, word).x;
  EXPECT_LT(joined, app::text_size(Type::chat, letter).x * 3 - 2);
  EXPECT_GE(typeset.edges(Type::chat, word).size(), 3u);
  std::vector<float> advances(word.size(), -1);
  app::measure_shaped({app::font_of(Type::chat), app::text_height(Type::chat)}, word, 0,
                      static_cast<uint32_t>(word.size()), true, advances);
  float sum = 0;
  for (const float each : advances) {
    EXPECT_GE(each, 0);
    sum += each;
  }
  EXPECT_NEAR(sum, joined, 0.01f);
}

TEST(ScriptText, EmojiKeepTheirColours) {
  if (!app::emoji_face(U'\U0001F600')) GTEST_SKIP() << "no font for it is installed: fonts-noto-color-emoji";
  Typeset typeset(true);
  EXPECT_TRUE(typeset.glyph(Type::chat, U'\U0001F600')->Colored);
  EXPECT_EQ(typeset.edges(Type::chat, "\U0001F468\u200d\U0001F469\u200d\U0001F467").size(), 1u);
  const float one = app::text_size(Type::chat, "\U0001F600").x;
  EXPECT_NEAR(app::text_size(Type::chat, "\u2764\ufe0f").x, one, 1) << "the picture, not the letter";
}

TEST(ScriptText, ParagraphsOfOtherScriptsStayInTheirColumn) {
  for (const bool system_fonts : {false, true}) {
    Typeset typeset(system_fonts);
    std::string text;
    for (int i = 0; i < 60; ++i) text += "\u0627\u0644\u0633\u0644\u0627\u0645 \u05e9\u05dc\u05d5\u05dd 12 abc ";
    app::TextBlock block;
    block.layout(text, Type::chat, 200);
    EXPECT_GT(block.line_count(), 10u);
    EXPECT_LE(block.widest(), 201);
  }
}

}  // namespace
}  // namespace canopy::test
