// What stands over the tree of Watch, at all sizes and scales: the sentences of slow motion, the discs of F1.

#include <gtest/gtest.h>
#include <imgui_internal.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <string>
#include <vector>

#include "app/shell/screen_regions.h"
#include "app/tree/tree_look.h"
#include "tests/app/support/drawn_texts.h"
#include "tests/app/support/ui_harness.h"

namespace canopy::test {
namespace {

struct WatchSize {
  float width, height, scale;
};

class WatchFit : public testing::TestWithParam<WatchSize> {
 protected:
  WatchFit() {
    const auto [width, height, scale] = GetParam();
    app::AppSettings settings;
    settings.layout = app::WindowLayout::watch;
    settings.user_scale = scale;
    settings.saved.reduced_motion = true;
    ui.emplace(settings, width, height);
    ui->app().run(app::OpenModel{CANOPY_SOURCE_DIR "/assets/demos/code.canopytrace"});
    ui->app().run(app::RoundsCommand(app::ShowRound{5}));
    frames(4);
  }
  void frames(int count) {
    for (int i = 0; i < count; ++i) ui->frame();
  }

  std::optional<UiHarness> ui;
};

TEST_P(WatchFit, TheSentencesOfSlowMotionAreWhole) {
  ui->app().run(app::RoundsCommand(app::SetSlowMotion{}));
  const size_t emitted = ui->view().rounds.shown()->emitted.size();
  const app::TreeModel tree = app::tree_model(*ui->view().rounds.shown());
  for (uint32_t phase = 0; phase < app::kPhases; ++phase) {
    if (phase > 0) ui->app().run(app::RoundsCommand(app::StepRound{1}));
    frames(3);
    ASSERT_EQ(ui->view().rounds.playback.phase, static_cast<app::Phase>(phase));
    const DrawnTexts drawn;
    ui->frame();
    const std::string sentence = app::phase_sentence(static_cast<app::Phase>(phase), emitted, tree);
    std::string said;  // the lines of it, one below the other
    float bottom = 0;
    for (const app::DrawnText& text : drawn.all()) {
      // Lines are cut at a space, which belongs to neither.
      std::string_view rest = std::string_view(sentence).substr(std::min(said.size(), sentence.size()));
      if (rest.starts_with(' ')) rest.remove_prefix(1);
      if (text.text.size() < 4 || !rest.starts_with(text.text)) continue;
      EXPECT_GE(text.min.y + 1, bottom) << "lines apart";
      EXPECT_LE(text.max.x, text.clip_max.x + 1) << text.text;
      said += (said.empty() ? "" : " ") + text.text;
      bottom = text.max.y - (text.max.y - text.min.y) * 0.2f;
    }
    EXPECT_EQ(said, sentence);
  }
}

bool is_number(const std::string& text) {
  return !text.empty() && text.size() <= 2 &&
         std::ranges::all_of(text, [](unsigned char c) { return std::isdigit(c); });
}

/// The rectangles of the discs that are drawn on the parts; their figures are in the window "What am I looking at".
std::vector<ImRect> discs_of(const DrawnTexts& drawn, float reach) {
  const ImGuiWindow* overview = ImGui::FindWindowByName("What am I looking at");
  std::vector<ImRect> discs;
  bool after = false;  // the overview is drawn last
  for (size_t i = 0; i < drawn.all().size(); ++i) {
    const app::DrawnText& text = drawn.all()[i];
    after = after || text.text == "What am I looking at";
    if (after || !is_number(text.text) || i + 1 >= drawn.all().size()) continue;
    const ImVec2 centre = {(text.min.x + text.max.x) * 0.5f, (text.min.y + text.max.y) * 0.5f};
    if (std::stoul(text.text) != discs.size() + 1 || text.clip_min.x > overview->Pos.x + 1 ||
        text.clip_max.x < overview->Pos.x + overview->Size.x - 1)
      continue;
    discs.push_back({centre.x - reach, centre.y - reach, centre.x + reach, centre.y + reach});
  }
  return discs;
}

TEST_P(WatchFit, TheDiscsOfF1CoverNoWordsAndNoOtherDisc) {
  ui->app().run(app::ShellCommand(app::ShowRegions{}));
  frames(4);
  const DrawnTexts drawn;
  ui->frame();
  const std::vector<ImRect> discs = discs_of(drawn, app::kRegionMark * GetParam().scale - 1);
  EXPECT_GE(discs.size(), 3u);
  for (size_t i = 0; i < discs.size(); ++i) {
    EXPECT_LE(discs[i].Max.x, GetParam().width + 1);
    for (size_t k = i + 1; k < discs.size(); ++k) EXPECT_FALSE(discs[i].Overlaps(discs[k])) << i + 1 << ", " << k + 1;
    for (const app::DrawnText& text : drawn.all()) {
      if (is_number(text.text) || text.text.empty()) continue;
      const float air = (text.max.y - text.min.y) * 0.2f;
      const ImRect letters = {std::max(text.min.x, text.clip_min.x), std::max(text.min.y + air, text.clip_min.y),
                              std::min(text.max.x, text.clip_max.x), std::min(text.max.y - air, text.clip_max.y)};
      const bool seen = letters.Max.x > letters.Min.x && letters.Max.y > letters.Min.y;
      EXPECT_FALSE(seen && discs[i].Overlaps(letters)) << "disc " << i + 1 << " on \"" << text.text << "\"";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, WatchFit,
                         testing::Values(WatchSize{900, 600, 0.75f}, WatchSize{900, 600, 1}, WatchSize{900, 600, 1.5f},
                                         WatchSize{900, 600, 2}, WatchSize{1280, 800, 0.75f}, WatchSize{1280, 800, 1},
                                         WatchSize{1280, 800, 1.5f}, WatchSize{1280, 800, 2}, WatchSize{1920, 1080, 1},
                                         WatchSize{1920, 1080, 2}, WatchSize{2560, 1440, 1}, WatchSize{2560, 1440, 2}),
                         [](const auto& info) {
                           return std::to_string(static_cast<int>(info.param.width)) + "_at_" +
                                  std::to_string(static_cast<int>(info.param.scale * 100));
                         });

}  // namespace
}  // namespace canopy::test
