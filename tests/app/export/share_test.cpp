// Rounds and recordings as files for others: sizes, ranges, what is refused, and that all of it can be cancelled.

#include <gtest/gtest.h>

#include "app/export/animation.h"
#include "app/export/html.h"
#include "app/export/raster.h"
#include "app/export/recording_page.h"
#include "app/export/round_picture.h"
#include "tests/app/export/decode_png.h"
#include "tests/app/support/sample_log.h"
#include "tests/app/tree/tree_samples.h"
#include "tests/base/expect_error.h"
#include "tests/base/temp_folder.h"
#include "tests/trace/trace_builder.h"

namespace canopy::app {
namespace {

using test::expect_error;

/// A trace of so many rounds with trees of this width, and words for its tokens.
std::shared_ptr<const TraceLog> recorded(const std::filesystem::path& path, uint32_t rounds, uint32_t width) {
  test::TraceBuilder builder;
  TraceWriter writer(path, builder.header(), builder.pieces());
  writer.begin(builder.begin(DecodeMode::tree));
  writer.prefilled(builder.prefill());
  for (uint32_t i = 0; i < rounds; ++i) writer.append(i % 10 == 9 ? builder.plain() : builder.tree(width));
  writer.end(builder.end());
  writer.finish();
  return std::make_shared<const TraceLog>(path);
}

TEST(RecordingPage, OfAHundredRoundsHasAtMostTwoMegabytes) {
  const test::TempFolder folder;
  for (const uint32_t width : {24u, 64u, 256u}) {
    const auto log = recorded(folder.path() / ("w" + std::to_string(width) + ".canopytrace"), 100, width);
    const std::string page = recording_page(run_of(log), {0, 100});
    RecordProperty("bytes_at_width_" + std::to_string(width), static_cast<int>(page.size()));
    EXPECT_LE(page.size(), 2'000'000u) << width;
    EXPECT_EQ(page, recording_page(run_of(log), {0, 100})) << "the same recording gives the same page";
  }
}

TEST(RecordingPage, CanBeOfAPartAndCanBeCancelled) {
  const test::TempFolder folder;
  const auto log = recorded(folder.path() / "a.canopytrace", 30, 12);
  const std::string part = recording_page(run_of(log), {10, 5});
  EXPECT_NE(part.find("passes 11 to 15 of 30"), std::string::npos);
  EXPECT_LT(part.size(), recording_page(run_of(log), {0, 30}).size());
  std::stop_source stop;
  ShareCallbacks callbacks{[&](size_t done, size_t total) {
                             EXPECT_EQ(total, 30u);
                             if (done == 4) stop.request_stop();
                             EXPECT_LE(done, 4u);
                           },
                           stop.get_token()};
  try {
    recording_page(run_of(log), {0, 30}, callbacks);
    FAIL() << "it went on";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::cancelled);
  }
}

TEST(RecordingPage, SaysWhereGuessesComeFromWhereTheTextHadAPart) {
  const test::TempFolder folder;
  const std::string drafted = recording_page(run_of(recorded(folder.path() / "d.canopytrace", 3, 9)), {0, 3});
  EXPECT_EQ(drafted.find("mark-found\""), std::string::npos);
  EXPECT_NE(drafted.find("how sure the drafter was"), std::string::npos);
  test::TraceBuilder builder;
  {
    TraceWriter writer(folder.path() / "t.canopytrace", builder.header(), builder.pieces());
    writer.begin(builder.begin(DecodeMode::tree));
    writer.prefilled(builder.prefill());
    RoundRecord round = builder.tree(9);
    for (size_t i = 1; i < round.nodes.size(); ++i) round.nodes[i].node.sources = kFromSuffix;
    round.match = 6;
    round.ms.draft = 0;
    writer.append(round);
    writer.end(builder.end());
  }
  const std::string page =
      recording_page(run_of(std::make_shared<const TraceLog>(folder.path() / "t.canopytrace")), {0, 1});
  for (const char* words : {"mark-found\"", "\"fromText\":true", "\"match\":6", "No drafter is asked",
                            "how sure the guess was", "Guessed from the text alone"})
    EXPECT_NE(page.find(words), std::string::npos) << words;
}

TEST(RecordingPage, RangesAreRefusedByName) {
  EXPECT_EQ(round_range(40, 10, std::nullopt, 100).count, 30u);
  EXPECT_EQ(round_range(40, 10, 5, 100).count, 5u);
  expect_error("passes 0 to 39", [] { round_range(40, 40, std::nullopt, 100); });
  expect_error("has 30 there", [] { round_range(40, 10, 31, 100); });
  expect_error("0 passes", [] { round_range(40, 10, 0, 100); });
  expect_error("at most 20 fit", [] { round_range(40, 0, std::nullopt, 20); });
}

TEST(RecordingPage, OfARedactedTraceSaysSo) {
  const test::TempFolder folder;
  test::TraceBuilder builder;
  {
    TraceWriter writer(folder.path() / "r.canopytrace", builder.header(), builder.pieces(), true);
    writer.begin(builder.begin(DecodeMode::tree));
    writer.prefilled(builder.prefill());
    for (int i = 0; i < 3; ++i) writer.append(builder.tree(9));
    writer.end(builder.end());
  }
  const std::string page =
      recording_page(run_of(std::make_shared<const TraceLog>(folder.path() / "r.canopytrace")), {0, 3});
  EXPECT_NE(page.find("without texts"), std::string::npos);
  EXPECT_NE(page.find("\"#1\""), std::string::npos) << "tokens are numbers";
}

TEST(RoundPicture, HasTheSizeThatWasAskedFor) {
  test::SampleLog log;
  log.add(test::small_round());
  for (const auto& [size, scale] : {std::pair(PictureSize{1280, 720}, 1.0f), std::pair(PictureSize{480, 320}, 2.0f)}) {
    const Image image = test::decode_png(round_png(log, 0, ThemeKind::light, size, scale));
    EXPECT_EQ(image.width, size.width * static_cast<uint32_t>(scale));
    EXPECT_EQ(image.height, size.height * static_cast<uint32_t>(scale));
    for (size_t i = 3; i < image.pixels.size(); i += 4) ASSERT_EQ(image.pixels[i], 255) << "nothing is left clear";
  }
  EXPECT_EQ(round_png(log, 0, ThemeKind::dark, {}), round_png(log, 0, ThemeKind::dark, {}));
  EXPECT_NE(round_png(log, 0, ThemeKind::dark, {}), round_png(log, 0, ThemeKind::projector, {}));
}

TEST(RoundPicture, RefusesByName) {
  test::SampleLog log;
  log.add(test::small_round());
  log.add(test::small_round());
  log.forget(1);
  expect_error("passes 0 to 1", [&] { round_svg(log, 2, std::nullopt, {}); });
  expect_error("not there any more", [&] { round_svg(log, 1, std::nullopt, {}); });
  expect_error("480x240", [&] { round_svg(log, 0, std::nullopt, {100, 100}); });
  expect_error("7680x4320", [&] { round_svg(log, 0, std::nullopt, {10'000, 720}); });
}

TEST(RoundPicture, SaysWhatIsSeen) {
  test::SampleLog log;
  log.name(99, " here");
  log.add(test::small_round());
  const RoundCard card(log, 0, {});
  EXPECT_NE(card.words().find("Two guesses were right, and the big model added here itself"), std::string::npos)
      << card.words();
  const std::string svg = round_svg(log, 0, std::nullopt, {});
  EXPECT_NE(svg.find("Two guesses were right"), std::string::npos);
  EXPECT_NE(svg.find("prefers-color-scheme:light"), std::string::npos);
  EXPECT_EQ(round_svg(log, 0, ThemeKind::dark, {}).find("prefers-color-scheme"), std::string::npos);
}

TEST(RoundPicture, MarksWordsThatWereFoundInTheText) {
  test::SampleLog log;
  for (const RoundRecord& record : {test::small_round(), test::found_round(), test::text_round()}) log.add(record);
  const auto svg = [&](size_t round) { return round_svg(log, round, ThemeKind::dark, {}); };
  EXPECT_EQ(svg(0).find("found in the text"), std::string::npos);
  for (const size_t round : {1u, 2u}) {
    EXPECT_NE(svg(round).find("found in the text"), std::string::npos);
    EXPECT_EQ(svg(round).find("how sure the drafter was"), std::string::npos);
  }
  EXPECT_NE(svg(1), svg(2));
}

TEST(RoundPicture, DrawsRoundsOfEveryShapeAtEveryMoment) {
  std::mt19937 random(5);
  test::SampleLog log;
  for (const uint32_t width : {1u, 2u, 40u, 700u}) log.add(test::random_round(random, width, 0.4));
  RoundRecord plain;
  plain.emitted = {7};
  log.add(plain);
  for (size_t round = 0; round < log.rounds(); ++round) {
    const RoundCard card(log, round, {900, 500});
    for (uint32_t phase = 0; phase < kPhases; ++phase)
      for (const float progress : {0.0f, 0.4f, 1.0f}) {
        Picture picture(900, 500);
        card.draw(picture, ThemeKind::dark, {static_cast<Phase>(phase), progress});
        for (const PicturePart& part : picture.parts()) {
          const auto* shape = std::get_if<Shape>(&part);
          if (!shape) continue;
          for (const PathStep& step : shape->path.steps())
            for (const Point p : step.at) ASSERT_TRUE(std::isfinite(p.x) && std::isfinite(p.y));
        }
      }
  }
}

TEST(Animation, HoldsItsRounds) {
  const test::TempFolder folder;
  const auto log = recorded(folder.path() / "a.canopytrace", 12, 9);
  const SharedRun run = run_of(log);
  const PictureSize size{480, 400};
  const std::string svg = animated_svg(run, {7, 3}, std::nullopt, size);  // two trees and a plain round
  size_t stills = 0;
  for (size_t at = svg.find("<g class="); at != std::string::npos; at = svg.find("<g class=", at + 1)) ++stills;
  EXPECT_EQ(stills, 7u);
  for (const char* words : {"pass 8 of 12", "pass 9 of 12", "pass 10 of 12", "prefers-color-scheme:light"})
    EXPECT_NE(svg.find(words), std::string::npos) << words;
  EXPECT_EQ(svg.find("<script"), std::string::npos);
  std::stop_source stop;
  stop.request_stop();
  EXPECT_THROW(animated_svg(run, {7, 3}, std::nullopt, size, {{}, stop.get_token()}), Error);
}

TEST(TextStrip, ShowsTheEndOfTheTextAsFarAsItIsTold) {
  const test::TempFolder folder;
  const auto log = recorded(folder.path() / "a.canopytrace", 20, 9);
  const SharedRun run = run_of(log);
  const TextStrip strip(run, 300);
  const auto words = [&](size_t round, bool told) {
    Picture picture(400, 200);
    strip.draw(picture, theme(ThemeKind::dark), {10, 10}, 3, round, told);
    std::string all;
    for (const PicturePart& part : picture.parts())
      if (const auto* letters = std::get_if<Letters>(&part)) {
        EXPECT_LE(letters->at.y, 10 + 3 * TextStrip::kLine);
        EXPECT_LE(letters->at.x + letters->fits, 311);
        all += letters->text;
      }
    return all;
  };
  EXPECT_EQ(words(6, true), words(7, false));
  EXPECT_NE(words(7, true), words(7, false));
  EXPECT_FALSE(words(0, false).empty()) << "the first token came with the prompt";
}

TEST(Html, EscapesTextAndData) {
  EXPECT_EQ(html_text("<a href=\"x\" id='y'>&\n"), "&lt;a href=&quot;x&quot; id=&#39;y&#39;&gt;&amp;\n");
  EXPECT_EQ(html_text(std::string("\0\x1b", 2)), "\\x00\\x1b");
  EXPECT_EQ(html_text("\xff"), "\ufffd");
  const std::string json = html_json({{"</script>", "<!--\u2028\u202e\xff&"}});
  EXPECT_EQ(json, R"({"\u003c/script\u003e":"\u003c!--\u2028\u202e\ufffd\u0026"})");
}

TEST(Html, APageAllowsItsOwnScriptAndNothingElse) {
  const std::string page = html_of({"a <b>", "p{}", "let x = 1;", "<p>text</p>"});
  EXPECT_NE(page.find("script-src 'sha256-"), std::string::npos);
  EXPECT_NE(page.find("default-src 'none'"), std::string::npos);
  EXPECT_NE(page.find("<title>a &lt;b&gt;</title>"), std::string::npos);
  EXPECT_EQ(html_of({"a", "", "", ""}).find("script"), std::string::npos);
  EXPECT_EQ(page.find("http://"), std::string::npos);
  EXPECT_EQ(page.find("https://"), std::string::npos);
}

}  // namespace
}  // namespace canopy::app
