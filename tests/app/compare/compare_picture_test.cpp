// Pictures of Compare and Sweep in three themes and several sizes. CANOPY_PICTURES=folder keeps them.

#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <thread>

#include "app/platform/image.h"
#include "app/run.h"
#include "engine/bench/sweep_file.h"
#include "tests/app/compare/compare_samples.h"
#include "tests/app/support/pixels.h"
#include "tests/base/temp_folder.h"

namespace canopy::test {
namespace {

struct PageShot {
  const char* name;
  uint32_t width, height;
  app::ThemeKind theme = app::ThemeKind::dark;
};

class ComparePictures : public testing::TestWithParam<PageShot> {
 protected:
  ComparePictures() : comparing_(engine_) {
    engine_.devices_ = some_devices();
    settings_.theme = GetParam().theme;
    settings_.system_fonts = false;
    engine_.script = [this](ScriptedEngine&, const Command& command) {
      if (const auto* compare = std::get_if<Compare>(&command)) comparing_.begin(*compare);
    };
    window_.emplace(engine_, settings_, GetParam().width, GetParam().height, false);
    ModelReady model = small_model();
    model.file_name = "Qwen3-4B.Q4_K_M.gguf";
    model.quantization = "Q4_K_M";
    model.drafter = "Qwen3-4B-DFlash-b16.gguf";
    model.device = "Radeon RX 7900 XTX";
    engine_.publish(model);
    app().pump();
  }
  app::App& app() { return window_->app(); }
  app::Image picture(const char* what) {
    const app::Image image = window_->settled_frame();
    keep_picture(image, std::string(what) + "-" + GetParam().name);
    return image;
  }

  ScriptedEngine engine_;
  ComparingEngine comparing_;
  app::AppSettings settings_;
  std::optional<app::Headless> window_;
};

TEST_P(ComparePictures, ARaceAndItsVerdict) {
  const app::Theme& t = app::theme(GetParam().theme);
  app().run(app::ShellCommand(app::ShowPage{app::WindowPage::compare}));
  app().pump();
  picture("compare-empty");
  app().run(app::ComparisonCommand(app::StartComparison{}));
  comparing_.make(2);
  comparing_.write_some(11);
  app().pump();
  const app::Image writing = picture("compare-writing");
  EXPECT_GT(pixels_of(writing, t.accepted), 100u) << "the lanes of those that wrote";
  comparing_.make();
  comparing_.finish();
  app().pump();
  const app::Image done = picture("compare");
  EXPECT_GT(pixels_of(done, t.accepted_bg), 2000u) << "tokens that were drafted";
  EXPECT_GT(pixels_of(done, t.verify), 500u) << "the times of rounds";
  EXPECT_EQ(pixels_of(done, t.rejected), 0u) << "nothing differs";
  app().run(app::ComparisonCommand(app::SeekRace{app().view().comparison.race_end() * 0.29}));
  const app::Image early = picture("compare-race");
  EXPECT_LT(pixels_of(early, t.accepted), pixels_of(done, t.accepted)) << "the future is faint";
}

TEST_P(ComparePictures, ADifferenceStandsOut) {
  comparing_.differing = 2;
  app().run(app::ShellCommand(app::ShowPage{app::WindowPage::compare}));
  app().run(app::ComparisonCommand(app::StartComparison{}));
  comparing_.make();
  comparing_.finish();
  app().pump();
  const app::Image image = picture("compare-differs");
  EXPECT_GT(pixels_of(image, app::theme(GetParam().theme).rejected_text), 10u);
}

TEST_P(ComparePictures, ASweepBesideAnothers) {
  const app::Theme& t = app::theme(GetParam().theme);
  Compare asked;
  asked.id = 77;
  asked.kind = SweepKind::sweep;
  asked.columns = app::columns_of({});
  for (const char* category : {"gsm", "he", "math"})
    asked.prompts.push_back({std::string(category) + "_01", category, {{"user", "Count."}}});
  asked.settings.repeats = 3;
  comparing_.begin(asked);
  comparing_.make();
  const TempFolder folder;
  const std::string ours = (folder.path() / "radeon-rx-7900-xtx-2026-11-24.json").string();
  const std::string theirs = (folder.path() / "geforce-rtx-4090-2026-11-24.json").string();
  std::ofstream(ours) << sweep_text(comparing_.sweep());
  Sweep other = comparing_.sweep();
  other.subjects[0].device = "GeForce RTX 4090";
  for (MeasuredRun& run : other.runs) run.decode_ms *= 0.4 + 0.002 * static_cast<double>(run.widest);
  std::ofstream(theirs) << sweep_text(other);
  engine_.poll();
  app().run(app::ShellCommand(app::ShowPage{app::WindowPage::sweep}));
  app().run(app::ComparisonCommand(app::OpenSweep{ours}));
  app().run(app::ComparisonCommand(app::AddOverlay{theirs}));
  for (int i = 0; i < 1000 && app().view().comparison.files.layers.empty(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    app().pump();
  }
  ASSERT_EQ(app().view().comparison.files.layers.size(), 1u);
  const app::Image image = picture("sweep");
  EXPECT_GT(pixels_of(image, t.accent), 200u) << "the curve";
}

INSTANTIATE_TEST_SUITE_P(, ComparePictures,
                         testing::Values(PageShot{"dark", 1600, 1000},
                                         PageShot{"light", 1280, 800, app::ThemeKind::light},
                                         PageShot{"projector", 1280, 800, app::ThemeKind::projector},
                                         PageShot{"900x600", 900, 600}),
                         [](const auto& info) { return "at_" + std::string(info.param.name); });

}  // namespace
}  // namespace canopy::test
