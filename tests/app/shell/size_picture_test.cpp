// Watch, the tour, slow motion and a wide tree at sizes, scales and themes. With CANOPY_PICTURES=folder all of them are
// drawn and kept; else some of each.

#include <gtest/gtest.h>
#include <imgui_internal.h>

#include <array>
#include <string>
#include <vector>

#include "tests/app/support/drawn_texts.h"
#include "tests/app/support/pixels.h"
#include "tests/app/support/watch_window.h"

namespace canopy::test {
namespace {

enum class Sight { watch, tour, slow_motion, wide };
constexpr std::array<const char*, 4> kSightNames = {"watch", "tour-4", "slow-motion", "wide-128"};

struct SizeShot {
  Sight sight;
  WatchShot shot;
};

struct ShotSize {
  const char* name;
  uint32_t width, height;
  float scale;
};
constexpr std::array<ShotSize, 5> kShotSizes = {{{"900x600", 900, 600, 1},
                                                 {"1280x800", 1280, 800, 1},
                                                 {"1920x1080", 1920, 1080, 1},
                                                 {"75", 1280, 800, 0.75f},
                                                 {"200", 1280, 800, 2}}};
constexpr std::array<std::pair<const char*, app::ThemeKind>, 3> kShotThemes = {
    {{"dark", app::ThemeKind::dark}, {"light", app::ThemeKind::light}, {"projector", app::ThemeKind::projector}}};

std::vector<SizeShot> size_shots() {
  const bool all = std::getenv("CANOPY_PICTURES") != nullptr;
  std::vector<SizeShot> shots;
  for (size_t sight = 0; sight < kSightNames.size(); ++sight)
    for (size_t theme = 0; theme < kShotThemes.size(); ++theme)
      for (size_t size = 0; size < kShotSizes.size(); ++size) {
        // One size of each theme, another one for each sight.
        if (!all && size != (sight + theme * 2) % kShotSizes.size()) continue;
        const ShotSize& at = kShotSizes[size];
        const std::string name = std::string(kSightNames[sight]) + "-" + kShotThemes[theme].first + "-" + at.name;
        shots.push_back({static_cast<Sight>(sight), {name, at.width, at.height, at.scale, kShotThemes[theme].second}});
      }
  return shots;
}

/// Height of the part of the picture, in pixels, in which the ground of the tree is seen.
size_t rows_of_ground(const app::Image& image, app::Colour ground) {
  size_t rows = 0;
  for (uint32_t y = 0; y < image.height; ++y) {
    size_t count = 0;
    for (uint32_t x = 0; x < image.width; ++x) {
      const uint8_t* p = &image.pixels[(size_t{y} * image.width + x) * 4];
      count += p[0] == (ground & 0xFF) && p[1] == (ground >> 8 & 0xFF) && p[2] == (ground >> 16 & 0xFF);
    }
    rows += count > image.width / 10;
  }
  return rows;
}

class SizePictures : public testing::TestWithParam<SizeShot> {
 protected:
  void prepare(WatchWindow& watch) {
    app::App& app = watch.app();
    if (GetParam().sight == Sight::tour) {
      app.run(app::ShellCommand(app::ShowTour{}));
      for (int step = 1; step < 4; ++step) app.run(app::ShellCommand(app::StepTour{}));
    }
    if (GetParam().sight == Sight::slow_motion) {
      app.run(app::RoundsCommand(app::SetSlowMotion{}));
      for (int step = 0; step < 3; ++step) app.run(app::RoundsCommand(app::StepRound{1}));
      ASSERT_EQ(app.view().rounds.playback.phase, app::Phase::walk);
    }
  }

  /// Texts of the tree's window and of the strip that are not whole. A wide tree, with the labels of its tufts, may be
  /// larger than its room, which then has a small map.
  std::vector<std::string> not_whole(const DrawnTexts& drawn) {
    std::vector<std::string> found;
    for (const char* name : {"Watch tree", "Watch passes"}) {
      const ImGuiWindow* window = ImGui::FindWindowByName(name);
      if (!window || !window->WasActive) continue;
      const ImRect rect = window->Rect();
      for (const app::DrawnText& text : drawn.all()) {
        if (!rect.Contains(text.min)) continue;
        const bool label = text.text.starts_with("+") || text.text.starts_with(" \u00b7 ");
        if (GetParam().sight == Sight::wide && label) continue;
        const bool elided = text.text.ends_with("\u2026");
        const bool cut = text.max.x > text.clip_max.x + 1 || text.max.x > rect.Max.x + 1;
        const bool low = text.min.y + (text.max.y - text.min.y) * 0.7f > text.clip_max.y;
        if (elided || cut || low) found.push_back(text.text);
      }
    }
    return found;
  }
};

TEST_P(SizePictures, AreWhole) {
  const auto& [sight, shot] = GetParam();
  const char* trace =
      sight == Sight::wide ? "/tests/app/traces/wide-128.canopytrace" : "/assets/demos/code.canopytrace";
  WatchWindow watch(shot, trace);
  prepare(watch);
  const app::Image image = watch.window->settled_frame();
  keep_picture(image, shot.name);
  const DrawnTexts drawn;
  watch.window->frame();
  ASSERT_GT(drawn.all().size(), 10u);
  for (const std::string& text : not_whole(drawn)) ADD_FAILURE() << "not whole: " << text;
  const app::Theme& t = app::theme(shot.theme);
  EXPECT_GT(pixels_of(image, t.accepted), 300u) << "the accepted path";
  if (sight != Sight::slow_motion) {
    EXPECT_GT(pixels_of(image, t.bonus), 10u);
  }
  if (sight == Sight::tour) {
    EXPECT_GT(pixels_of(image, t.raised), 20000u) << "the card";
    EXPECT_TRUE(drawn.has("Why a tree and not a chain?"));
  } else {
    EXPECT_GE(rows_of_ground(image, t.canvas), shot.height * 6 / 10) << "the tree has three fifths of the height";
  }
  if (sight == Sight::wide) {
    EXPECT_GT(watch.app().view().rounds.shown()->nodes.size(), 120u);
  }
}

INSTANTIATE_TEST_SUITE_P(, SizePictures, testing::ValuesIn(size_shots()), [](const auto& info) {
  std::string name = info.param.shot.name;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

}  // namespace
}  // namespace canopy::test
