// Pictures of "What if" with the demo. CANOPY_PICTURES=folder keeps them.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "app/platform/image.h"
#include "tests/app/support/await_what_if.h"
#include "tests/app/support/pixels.h"
#include "tests/app/support/watch_window.h"

namespace canopy::test {
namespace {

class WhatIfPictures : public testing::TestWithParam<WatchShot> {};

TEST_P(WhatIfPictures, ShowDevicesSideBySideAndOnOneClock) {
  const WatchShot& shot = GetParam();
  WatchWindow watch(shot);
  watch.app().run(app::ShellCommand(app::SetLayout{app::WindowLayout::what_if}));
  ASSERT_TRUE(await_what_if(watch.app()));
  const app::Image image = watch.window->settled_frame();
  keep_picture(image, shot.name);
  const app::Theme& t = app::theme(shot.theme);
  EXPECT_GT(pixels_of(image, t.panel), image.pixels.size() / 4 / 4) << "the cards";
  if (shot.height / shot.scale < 500) return;  // no room for the race
  // The race stands at its start: all passes are still to come, and faint.
  EXPECT_GT(pixels_of(image, app::mix(t.panel, t.accepted, 0.35f)), 1000u) << "guessed tokens of the race";
  EXPECT_GT(pixels_of(image, app::mix(t.panel, t.bonus, 0.35f)), 50u) << "the big model's own";
}

// The trees that another device would have verified, in Watch, with words that say so.
TEST(WhatIfTrees, AreShownInWatchAsPredicted) {
  WatchWindow watch({"", 1280, 800});
  watch.app().run(app::ShellCommand(app::SetLayout{app::WindowLayout::what_if}));
  ASSERT_TRUE(await_what_if(watch.app()));
  const auto recording = watch.app().view().rounds.log;
  watch.app().run(app::WhatIfCommand(app::ShowAsIf{2}));
  EXPECT_EQ(watch.app().view().rounds.log, recording) << "it is made beside the window";
  EXPECT_TRUE(watch.app().view().what_if.writing);
  ASSERT_TRUE(await_as_if(watch.app()));
  EXPECT_EQ(watch.app().view().shell.layout, app::WindowLayout::watch);
  EXPECT_EQ(watch.app().view().rounds.log->times(), "predicted");
  watch.app().run(app::RoundsCommand(app::ShowRound{5}));
  const app::Image image = watch.window->settled_frame();
  keep_picture(image, "what-if-trees");
  const app::Theme& t = app::theme(app::ThemeKind::dark);
  EXPECT_GT(pixels_of(image, t.accepted), 300u) << "the accepted path";
  EXPECT_GT(pixels_of(image, t.canvas), image.pixels.size() / 4 / 4);
}

// Who goes on to something else meanwhile is not called back.
TEST(WhatIfTrees, AreNotShownWhenAnotherRecordingWasOpened) {
  WatchWindow watch({"", 1280, 800});
  watch.app().run(app::ShellCommand(app::SetLayout{app::WindowLayout::what_if}));
  ASSERT_TRUE(await_what_if(watch.app()));
  watch.app().run(app::WhatIfCommand(app::ShowAsIf{1}));
  ASSERT_TRUE(await_as_if(watch.app()));
  const auto shown = watch.app().view().rounds.log;
  const std::string path = watch.app().view().rounds.trace_path;
  watch.app().run(app::ShellCommand(app::SetLayout{app::WindowLayout::what_if}));
  ASSERT_TRUE(await_what_if(watch.app()));
  watch.app().run(app::WhatIfCommand(app::ShowAsIf{2}));
  watch.app().open_paths({path});
  const auto opened = watch.app().view().rounds.log;
  EXPECT_NE(opened, shown);
  ASSERT_TRUE(await_as_if(watch.app()));
  EXPECT_EQ(watch.app().view().rounds.log, opened);
}

INSTANTIATE_TEST_SUITE_P(, WhatIfPictures,
                         testing::Values(WatchShot{"what-if-dark", 1280, 800},
                                         WatchShot{"what-if-light", 1280, 800, 1, app::ThemeKind::light},
                                         WatchShot{"what-if-projector", 1280, 800, 1, app::ThemeKind::projector},
                                         WatchShot{"what-if-900x600", 900, 600},
                                         WatchShot{"what-if-1920x1080", 1920, 1080},
                                         WatchShot{"what-if-200", 1280, 800, 2}),
                         [](const auto& info) {
                           std::string name = info.param.name;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace canopy::test
