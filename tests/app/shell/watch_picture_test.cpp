// Pictures of Watch at the sizes of the design, and of the six steps of slow motion. CANOPY_PICTURES=folder keeps them.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "app/platform/image.h"
#include "tests/app/support/pixels.h"
#include "tests/app/support/watch_window.h"

namespace canopy::test {
namespace {

class WatchPictures : public testing::TestWithParam<WatchShot> {};

TEST_P(WatchPictures, ShowTheTreeLarge) {
  const WatchShot& shot = GetParam();
  WatchWindow watch(shot);
  const app::Image image = watch.window->settled_frame();
  keep_picture(image, shot.name);
  const app::Theme& t = app::theme(shot.theme);
  // The canvas of the tree, with what is drawn on it, has most of the picture.
  EXPECT_GT(pixels_of(image, t.canvas), image.pixels.size() / 4 / 4);
  EXPECT_GT(pixels_of(image, t.accepted), 300u) << "the accepted path";
  EXPECT_GT(pixels_of(image, t.bonus), 10u);
}

TEST_P(WatchPictures, NameTheirPartsByF1) {
  const WatchShot& shot = GetParam();
  WatchWindow watch(shot);
  const app::Image before = watch.window->settled_frame();
  watch.app().run(app::ShellCommand(app::ShowRegions{}));
  const app::Image image = watch.window->settled_frame();
  keep_picture(image, std::string(shot.name) + "-f1");
  const app::Theme& t = app::theme(shot.theme);
  EXPECT_GT(pixels_of(image, t.raised), image.pixels.size() / 4 / 20) << "the card";
  EXPECT_LT(pixels_of(image, t.canvas), pixels_of(before, t.canvas) / 4) << "everything else is dimmed";
}

INSTANTIATE_TEST_SUITE_P(, WatchPictures,
                         testing::Values(WatchShot{"watch-dark", 1280, 800},
                                         WatchShot{"watch-light", 1280, 800, 1, app::ThemeKind::light},
                                         WatchShot{"watch-900x600", 900, 600}, WatchShot{"watch-1920x1080", 1920, 1080},
                                         WatchShot{"watch-75", 1280, 800, 0.75f}, WatchShot{"watch-200", 1280, 800, 2}),
                         [](const auto& info) {
                           std::string name = info.param.name;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

/// The picture without its left third, where the chat is.
app::Image beyond_chat(const app::Image& image) {
  const uint32_t first = image.width / 3;
  app::Image rest{image.width - first, image.height, {}};
  for (uint32_t y = 0; y < image.height; ++y) {
    const auto row = image.pixels.begin() + static_cast<std::ptrdiff_t>(size_t{y} * image.width * 4);
    rest.pixels.insert(rest.pixels.end(), row + static_cast<std::ptrdiff_t>(size_t{first} * 4),
                       row + static_cast<std::ptrdiff_t>(size_t{image.width} * 4));
  }
  return rest;
}

// What the tour does not speak of is dim, and its parts are framed.
TEST(TourPictures, EachStepFramesItsParts) {
  WatchWindow watch({"", 1280, 800});
  const app::Theme& t = app::theme(app::ThemeKind::dark);
  const size_t canvas = pixels_of(beyond_chat(watch.window->settled_frame()), t.canvas);
  watch.app().run(app::ShellCommand(app::ShowTour{}));
  for (uint32_t step = 0; step < app::kTourSteps; ++step) {
    const app::Image image = watch.window->settled_frame();
    keep_picture(image, "tour-" + std::to_string(step + 1));
    EXPECT_GT(pixels_of(image, t.accent), 1500u) << "the frame, in step " << step + 1;
    EXPECT_GT(pixels_of(image, t.raised), 20000u) << "the card, in step " << step + 1;
    if (step == 0 || step > 4) {
      EXPECT_LT(pixels_of(beyond_chat(image), t.canvas), canvas / 4) << "the tree is dim in step " << step + 1;
    }
    watch.app().run(app::ShellCommand(app::StepTour{}));
  }
}

// Nothing is told before its step: before the walk there is no blue and no vermilion, before the last step the text and
// its bar wait.
TEST(WatchSlowMotion, TellsNothingEarly) {
  WatchWindow watch({"", 1280, 800});
  app::App& app = watch.app();
  const app::Theme& t = app::theme(app::ThemeKind::dark);
  const size_t whole = app.view().conversation().back().text.size();
  const size_t passed = pixels_of(watch.window->settled_frame(), t.rejected);
  app.run(app::RoundsCommand(app::SetSlowMotion{}));
  for (uint32_t phase = 0; phase < app::kPhases; ++phase) {
    if (phase > 0) app.run(app::RoundsCommand(app::StepRound{1}));
    const app::Image image = watch.window->settled_frame();
    keep_picture(image, "slow-motion-" + std::to_string(phase + 1));
    ASSERT_EQ(app.view().rounds.playback.phase, static_cast<app::Phase>(phase));
    const size_t text = app.view().conversation().back().text.size();
    if (phase < 5)
      EXPECT_LT(text, whole) << "the text comes last";
    else
      EXPECT_EQ(text, whole);
    if (phase < 3)
      EXPECT_LT(pixels_of(image, t.rejected), passed / 2)
          << "nothing is rejected before the walk, in step " << phase + 1;
    else
      EXPECT_GT(pixels_of(image, t.rejected), passed / 2);
  }
}

}  // namespace
}  // namespace canopy::test
