// Fonts of the system for what the program's own lack. Where a package is not installed, its tests are skipped and name
// it.

#include "app/platform/system_fonts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "app/platform/font_face.h"

namespace canopy::app {
namespace {

#define SKIP_WITHOUT_FONT(character, package) \
  if (system_face(character) == nullptr) GTEST_SKIP() << "no font for it is installed: " package

void expect_font(char32_t c) {
  const SystemFace* face = system_face(c);
  ASSERT_NE(face, nullptr);
  EXPECT_TRUE(face->has(c));
  const uint32_t glyph = face->glyph_of(c);
  EXPECT_GT(glyph, 0u);
  EXPECT_GT(face->advance(glyph), 0.1f);
  EXPECT_FALSE(face->pixels(glyph, 20).pixels.empty());
  EXPECT_EQ(face, system_face(c)) << "found once";
}

TEST(SystemFonts, ArabicHebrewHindiAndThaiAreFound) {
  SKIP_WITHOUT_FONT(U'\u0928', "fonts-noto-core");
  SKIP_WITHOUT_FONT(U'\u0e2a', "fonts-noto-core");
  for (const char32_t c : {U'\u0645', U'\u05d0', U'\u0928', U'\u0e2a'}) expect_font(c);
}

TEST(SystemFonts, ChineseJapaneseAndKoreanAreFound) {
  SKIP_WITHOUT_FONT(U'\u4f60', "fonts-noto-cjk");
  SKIP_WITHOUT_FONT(U'\uc548', "fonts-noto-cjk");
  for (const char32_t c : {U'\u4f60', U'\u3042', U'\uc548'}) expect_font(c);
}

TEST(SystemFonts, NoFontHasPrivateOrUnassignedCharacters) {
  EXPECT_EQ(system_face(U'\U000F0123'), nullptr);
  EXPECT_EQ(system_face(U'\U000E1000'), nullptr);
}

TEST(SystemFonts, EmojiAreColouredAndPutTogether) {
  const SystemFace* face = emoji_face(U'\U0001F600');
  if (!face) GTEST_SKIP() << "no font for it is installed: fonts-noto-color-emoji";
  const GlyphPixels pixels = face->pixels(face->glyph_of(U'\U0001F600'), 20);
  ASSERT_FALSE(pixels.pixels.empty());
  EXPECT_TRUE(pixels.coloured);
  EXPECT_LE(pixels.height, 30u) << "as large as the letters beside it";
  size_t yellow = 0;
  for (size_t i = 0; i < pixels.pixels.size(); i += 4)
    yellow += pixels.pixels[i] > 200 && pixels.pixels[i + 1] > 120 && pixels.pixels[i + 2] < 120;
  EXPECT_GT(yellow, 50u);
  EXPECT_EQ(face->shape("\U0001F468\u200d\U0001F469\u200d\U0001F467", false)->size(), 1u) << "a family";
  EXPECT_EQ(face->shape("\U0001F1E9\U0001F1EA", false)->size(), 1u) << "a flag";
}

TEST(SystemFonts, ArabicLettersAreJoined) {
  SKIP_WITHOUT_FONT(U'\u0628', "fonts-noto-core");
  const SystemFace& face = *system_face(U'\u0628');
  const auto alone = face.shape("\u0628", true), word = face.shape("\u0628\u0628\u0628", true);
  ASSERT_EQ(alone->size(), 1u);
  ASSERT_GE(word->size(), 3u);
  std::set<uint32_t> bodies;  // of the letter at the end, in the middle and at the beginning
  for (const ShapedGlyph& glyph : *word)
    if (glyph.advance > 0.05f) bodies.insert(glyph.glyph);
  EXPECT_EQ(bodies.size(), 3u) << "three letters, three forms";
  EXPECT_FALSE(bodies.contains(alone->front().glyph) && bodies.size() == 1);
  EXPECT_GT(word->front().byte, word->back().byte) << "the last letter is leftmost";
  const auto ligature = face.shape("\u0644\u0627", true);
  float two = 0, apart = 0;
  for (const ShapedGlyph& glyph : *ligature) two += glyph.advance;
  for (const char* letter : {"\u0644", "\u0627"}) apart += face.shape(letter, true)->front().advance;
  EXPECT_LT(two, apart) << "lam and alef are one sign";
}

TEST(SystemFonts, IndianVowelsGoWhereTheyAreRead) {
  SKIP_WITHOUT_FONT(U'\u0928', "fonts-noto-core");
  const SystemFace& face = *system_face(U'\u0928');
  const auto shaped = face.shape("\u0928\u093f", false);  // the vowel is written before the letter
  ASSERT_EQ(shaped->size(), 2u);
  EXPECT_EQ(shaped->back().glyph, face.shape("\u0928", false)->front().glyph);
  EXPECT_EQ(shaped->front().byte, shaped->back().byte) << "one group";
}

TEST(SystemFonts, GlyphsOfLinesStandInTheOrderTheyAreRead) {
  const auto placed = glyphs_of(Face::mono, "a\u05d0(\u05d1", 20), bracket = glyphs_of(Face::mono, ")", 20),
             letter = glyphs_of(Face::mono, "a", 20);
  ASSERT_EQ(placed.size(), 4u);
  for (size_t i = 1; i < placed.size(); ++i) EXPECT_GT(placed[i].x, placed[i - 1].x);
  EXPECT_EQ(placed[0].glyph.contours, letter[0].glyph.contours);
  EXPECT_EQ(placed[2].glyph.contours, bracket[0].glyph.contours) << "turned round";
}

TEST(SystemFonts, WidthsOfPicturesDoNotDependOnThem) {
  EXPECT_NEAR(text_width(Face::mono, 10, "\u05d0\u05d1"), 12, 0.01);
  EXPECT_NEAR(text_width(Face::sans, 10, "\U0001F468\u200d\U0001F469"), 10, 0.01) << "one emoji of two";
  EXPECT_NEAR(text_width(Face::mono, 10, "\u2764\ufe0f"), 12, 0.01) << "as wide as other emoji";
}

TEST(CodeBox, EveryCodeHasItsOwnBox) {
  std::set<std::vector<std::array<uint32_t, 4>>> seen;
  for (char32_t c = 0xE000; c < 0xE100; ++c) {
    const CodeBox box = code_box(c);
    EXPECT_EQ(box.width, 11u);
    EXPECT_EQ(box.height, 15u);
    for (const auto& [x0, y0, x1, y1] : box.filled) {
      EXPECT_LT(x0, x1);
      EXPECT_LT(y0, y1);
      EXPECT_LE(x1, box.width);
      EXPECT_LE(y1, box.height);
    }
    seen.insert(box.filled);
  }
  EXPECT_EQ(seen.size(), 0x100u);
  EXPECT_EQ(code_box(0xF0123).width, 15u) << "five digits: three above two";
  EXPECT_EQ(code_box(0x10FFFF).width, 15u);
}

TEST(CodeBox, StandsForPrivateLettersThoughATypefaceHasSome) {
  EXPECT_FALSE(has_own_glyph(Face::sans, 0xE123));
  const auto one = glyphs_of(Face::sans, "\ue123", 20), other = glyphs_of(Face::sans, "\ue124", 20);
  ASSERT_EQ(one.size(), 1u);
  if (system_face(0xE123) || system_face(0xE124)) GTEST_SKIP() << "a font here has private characters";
  EXPECT_GT(one[0].glyph.contours.size(), 20u);
  EXPECT_NE(one[0].glyph.contours, other[0].glyph.contours);
}

TEST(MissingFonts, OneSentenceSaysWhatToInstall) {
  EXPECT_EQ(missing_fonts_note({}), "");
  EXPECT_EQ(missing_fonts_note({0x4F60, 0x597D, 0x1F600}),
            "No font here shows Chinese, emoji; boxes with codes stand for them. To see them: sudo apt install "
            "fonts-noto-cjk fonts-noto-color-emoji, and start Canopy again.");
  EXPECT_NE(missing_fonts_note({0x0928}).find("Devanagari"), std::string::npos);
  EXPECT_NE(missing_fonts_note({0x0928}).find("fonts-noto-core,"), std::string::npos);
  EXPECT_EQ(missing_fonts_note({0xE123}).find("apt"), std::string::npos) << "no package is known for private letters";
}

}  // namespace
}  // namespace canopy::app
