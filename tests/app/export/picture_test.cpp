// Pictures: what is covered, letters, and the files that they become.

#include "app/export/picture.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <stdexcept>

#include "app/export/raster.h"
#include "app/platform/image.h"
#include "tests/app/export/decode_png.h"
#include "tests/base/expect_error.h"

namespace canopy::app {
namespace {

constexpr Colour kWhite = 0xFFFFFFFF, kRed = 0xFF0000FF;

uint8_t alpha_at(const Image& image, uint32_t x, uint32_t y) {
  return image.pixels[(size_t{y} * image.width + x) * 4 + 3];
}

double covered(const Image& image) {
  double sum = 0;
  for (size_t i = 3; i < image.pixels.size(); i += 4) sum += image.pixels[i] / 255.0;
  return sum;
}

TEST(Raster, CoversTheShareOfEachPixel) {
  Picture picture(6, 4);
  picture.fill(rectangle({1.25f, 1}, {3.5f, 2.25f}), kWhite);
  const Image image = rasterize(picture);
  EXPECT_NEAR(alpha_at(image, 1, 1), 191, 1);
  EXPECT_EQ(alpha_at(image, 2, 1), 255);
  EXPECT_NEAR(alpha_at(image, 3, 1), 128, 1);
  EXPECT_NEAR(alpha_at(image, 2, 2), 64, 1);
  EXPECT_EQ(alpha_at(image, 0, 1), 0);
  EXPECT_EQ(alpha_at(image, 4, 1), 0);
  EXPECT_NEAR(covered(image), 2.25 * 1.25, 0.02);
}

TEST(Raster, AreasOfCirclesAndHolesAreRight) {
  Picture disc(80, 80);
  disc.fill(circle({40.3f, 39.6f}, 30), kWhite);
  EXPECT_NEAR(covered(rasterize(disc)), 3.14159265 * 900, 8);
  Path ring = polygon({{10, 10}, {50, 10}, {50, 50}, {10, 50}});
  ring.move({20, 20}).line({20, 40}).line({40, 40}).line({40, 20}).close();  // the other way round
  Picture hole(60, 60);
  hole.fill(ring, kWhite);
  EXPECT_NEAR(covered(rasterize(hole)), 1600 - 400, 1);
}

TEST(Raster, StrokesAreAsWideAsTheySayAndHaveNoHoles) {
  Picture line(100, 20);
  line.stroke(Path().move({10, 10}).line({90, 10}), {kWhite, 3, 0, 0});
  EXPECT_NEAR(covered(rasterize(line)), 240, 1);
  Picture dashed(100, 20);
  dashed.stroke(Path().move({10, 10}).line({90, 10}), {kWhite, 3, 4, 4});
  EXPECT_NEAR(covered(rasterize(dashed)), 120, 1);
  Picture thin(100, 20);
  thin.stroke(Path().move({10, 10.5f}).line({90, 10.5f}), {kWhite, 0.5f, 0, 0});
  EXPECT_NEAR(covered(rasterize(thin)), 40, 1) << "fainter in place of narrower";
  // At every bend of a zigzag, right and left, the corner is filled.
  Picture bends(120, 60);
  const Path zigzag = Path().move({10, 10}).line({30, 50}).line({50, 10}).line({70, 50}).line({90, 10});
  bends.stroke(zigzag, {kWhite, 6, 0, 0});
  const Image image = rasterize(bends);
  for (const auto& [x, y] : {std::pair(30, 49), std::pair(50, 10), std::pair(70, 49)})
    EXPECT_GT(alpha_at(image, static_cast<uint32_t>(x), static_cast<uint32_t>(y)), 240) << x << ", " << y;
}

TEST(Raster, WhatIsOutsideIsCutAndWhatIsNoNumberIsLeftOut) {
  Picture picture(10, 10);
  picture.fill(rectangle({-1000, -1000}, {1000, 1000}), kWhite);
  EXPECT_NEAR(covered(rasterize(picture)), 100, 0.01);
  Picture odd(10, 10);
  odd.fill(polygon({{std::nanf(""), 1}, {5, 5}, {1, 5}}), kWhite);
  odd.fill(polygon({}), kWhite);
  odd.stroke(Path().move({5, 5}), {kWhite, 2, 0, 0});
  odd.stroke(Path().move({20, 20}).line({30, 30}), {kWhite, 2, 0, 0});
  EXPECT_EQ(covered(rasterize(odd)), 0);
}

TEST(Raster, ScalesAndRefusesSizesByName) {
  Picture picture(10, 10);
  picture.fill(rectangle({2, 2}, {4, 4}), kWhite);
  const Image image = rasterize(picture, 3);
  EXPECT_EQ(image.width, 30u);
  EXPECT_NEAR(covered(image), 36, 0.1);
  test::expect_error("8192", [] { rasterize(Picture(9000, 10)); });
  test::expect_error("pixels", [] { rasterize(Picture(0, 10)); });
}

TEST(Letters, HaveTheWidthsOfTheirTypeface) {
  EXPECT_NEAR(text_width(Face::mono, 10, "abc"), 18, 0.01);
  EXPECT_NEAR(text_width(Face::mono_semibold, 10, "W.i"), 18, 0.01);
  EXPECT_LT(text_width(Face::sans, 10, "iii"), text_width(Face::sans, 10, "WWW"));
  EXPECT_NEAR(text_width(Face::mono, 10, "\u6f22"), 12, 0.01) << "two cells, whatever fonts there are";
  EXPECT_EQ(text_width(Face::mono, 10, ""), 0);
  EXPECT_EQ(text_within(Face::mono, 10, "abcdef", 100), "abcdef");
  EXPECT_EQ(text_within(Face::mono, 10, "abcdef", 24), "abc\u2026");
  EXPECT_EQ(text_within(Face::mono, 10, "a\xffz", 100), "a\ufffdz");
}

TEST(Letters, AreDrawnWhateverTheyAre) {
  const auto ink = [](const std::string& text) {
    Picture picture(200, 40);
    picture.write({10, 20}, Face::mono, 20, kWhite, text);
    return covered(rasterize(picture));
  };
  EXPECT_GT(ink("n"), 20);
  EXPECT_GT(ink("nn"), 1.9 * ink("n"));
  EXPECT_EQ(ink(" "), 0);
  EXPECT_GT(ink("\U0001F333"), 5) << "a glyph of the system's, or a frame";
  EXPECT_GT(ink("\U000F1234"), 5) << "a frame: no font has that";
  EXPECT_GT(ink("\xff"), 5) << "U+FFFD";
}

Image noise(uint32_t width, uint32_t height, bool opaque, uint32_t seed) {
  std::mt19937 random(seed);
  Image image{width, height, {}};
  for (size_t i = 0; i < size_t{width} * height * 4; ++i)
    image.pixels.push_back(opaque && i % 4 == 3 ? uint8_t{255} : static_cast<uint8_t>(random() % 7 * 40));
  return image;
}

TEST(Png, IsReadAsWhatItWas) {
  for (const bool opaque : {true, false})
    for (const auto& [width, height] : {std::pair(1u, 1u), std::pair(17u, 5u), std::pair(64u, 33u)}) {
      const Image image = noise(width, height, opaque, width);
      int channels = 0;
      const Image read = test::decode_png(encode_png(image), &channels);
      EXPECT_EQ(read.pixels, image.pixels) << width << " x " << height;
      EXPECT_EQ(channels, opaque ? 3 : 4);
      test::png_chunks(encode_png(image));
    }
}

Picture sample(Colour colour, const std::string& text) {
  Picture picture(100, 50);
  picture.fill(rectangle({0, 0}, {10, 10}), colour);
  picture.write({5, 20}, Face::mono, 12, colour, text);
  return picture;
}

TEST(Svg, EscapesWhatItIsGiven) {
  const std::string svg = svg_of(sample(kRed, "</text><script>\"'&\u202e\x01"), {"a < b", "c & d", 0, {}});
  EXPECT_EQ(svg.find("<script"), std::string::npos);
  EXPECT_EQ(svg.find("\u202e"), std::string::npos);
  EXPECT_NE(svg.find("&lt;/text&gt;&lt;script&gt;&quot;&#39;&amp;\\u202e\\x01"), std::string::npos) << svg;
  EXPECT_NE(svg.find("<title id=\"title\">a &lt; b</title>"), std::string::npos);
  EXPECT_NE(svg.find("#ff0000"), std::string::npos);
  EXPECT_EQ(svg.find("href"), std::string::npos) << "nothing is loaded";
}

TEST(Svg, HasBothThemesOnlyOfTheSameShapes) {
  const Picture light = sample(kWhite, "x"), other = sample(kWhite, "y");
  const std::string svg = svg_of(sample(kRed, "x"), {"t", "d", 0, {}}, &light);
  EXPECT_NE(svg.find("prefers-color-scheme:light"), std::string::npos);
  EXPECT_NE(svg.find("#ffffff"), std::string::npos);
  EXPECT_THROW(svg_of(sample(kRed, "x"), {"t", "d", 0, {}}, &other), std::logic_error);
  const Picture none(100, 50);
  EXPECT_THROW(svg_of(sample(kRed, "x"), {"t", "d", 0, {}}, &none), std::logic_error);
}

TEST(Svg, ShowsGroupsInTheirTimesAndOneWhereMotionIsNotWanted) {
  Picture picture(10, 10);
  for (const char* name : {"first", "second"}) {
    picture.add(Group{name});
    picture.fill(rectangle({0, 0}, {5, 5}), kRed);
  }
  const std::string svg = svg_of(picture, {"t", "d", 1000, {{"first", 0, 250}, {"second", 250, 1000}}});
  EXPECT_NE(svg.find("@keyframes first{0%{visibility:visible}25%{visibility:hidden}}"), std::string::npos) << svg;
  EXPECT_NE(svg.find("@keyframes second{0%{visibility:hidden}25%{visibility:visible}}"), std::string::npos) << svg;
  EXPECT_NE(svg.find("prefers-reduced-motion:reduce){g{animation:none!important}.second{visibility:visible}}"),
            std::string::npos)
      << svg;
}

}  // namespace
}  // namespace canopy::app
