// Pictures of the tree's panel, on whatever Vulkan device the machine has. CANOPY_PICTURES=folder keeps the pictures;
// CANOPY_PICTURES_TRACE=file draws a recorded run in addition.

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "app/platform/image.h"
#include "app/platform/vulkan.h"
#include "app/state/round_log.h"
#include "app/tree/tree_panel.h"
#include "tests/app/support/panel_context.h"
#include "tests/app/support/pixels.h"
#include "tests/app/support/sample_log.h"
#include "tests/app/tree/tree_samples.h"
#include "tests/trace/trace_builder.h"

namespace canopy::test {
namespace {

using app::ThemeKind;

struct TreeShot {
  std::string name;
  uint32_t width = 868, height = 524;
  ThemeKind theme = ThemeKind::dark;
  float scale = 1;
  std::optional<uint32_t> selected = std::nullopt;
  std::optional<app::Phase> phase = std::nullopt;
  float progress = 1;
  float wheel = 0;
};

app::Image picture(const std::shared_ptr<app::RoundLog>& log, size_t round, const TreeShot& shot) {
  app::TreePanel panel;
  app::UiDevice device({});
  PanelContext context(panel, static_cast<float>(shot.width), static_cast<float>(shot.height), shot.theme, shot.scale);
  app::OffscreenTarget target(device, {shot.width, shot.height});
  context.view.rounds.log = log;
  context.view.rounds.playback.shown = round;
  context.view.rounds.reduced_motion = true;
  if (shot.phase) {
    context.view.rounds.playback.slow_motion = true;
    context.view.rounds.playback.phase = *shot.phase;
    context.view.rounds.playback.progress = shot.progress;
  }
  if (shot.selected) context.view.rounds.selected = app::NodeRef{round, *shot.selected};
  app::Image image;
  for (int frame = 0; frame < 5; ++frame) {
    ImGuiIO& io = ImGui::GetIO();
    io.DeltaTime = 1.0f / 60;
    if (shot.wheel != 0 && frame == 1) {
      io.AddMousePosEvent(static_cast<float>(shot.width) * 0.45f, static_cast<float>(shot.height) * 0.5f);
    } else if (shot.wheel != 0 && frame == 2) {
      io.AddMouseWheelEvent(0, shot.wheel);
    } else if (frame == 3) {
      io.AddMousePosEvent(-100, -100);
    }
    target.new_frame();
    ImGui::NewFrame();
    context.draw();
    ImGui::Render();
    image = target.render(ImGui::GetDrawData(), app::theme(shot.theme).back);
    context.fold();
  }
  keep_picture(image, shot.name);
  return image;
}

/// A log of trees of this width that look like real ones.
std::shared_ptr<SampleLog> built_log(uint32_t width, size_t rounds = 3) {
  TraceBuilder builder(5);
  builder.begin(DecodeMode::tree);
  auto log = std::make_shared<SampleLog>();
  const TracePieces pieces = builder.pieces();
  for (uint32_t token = 0; token < TraceBuilder::vocab; ++token) log->name(token, std::string(pieces(token).bytes));
  for (size_t i = 0; i < rounds; ++i) log->add(builder.tree(width));
  return log;
}

TEST(TreePicture, EveryStateHasItsColourInBothThemes) {
  for (const ThemeKind kind : {ThemeKind::dark, ThemeKind::light}) {
    const auto log = built_log(64);
    const bool dark = kind == ThemeKind::dark;
    const app::Image image = picture(log, 2, {.name = dark ? "built64-dark" : "built64-light", .theme = kind});
    const app::Theme& t = app::theme(kind);
    for (const app::Colour colour : {t.accepted, t.rejected, t.unreached, t.bonus, t.canvas, t.text})
      EXPECT_GT(pixels_of(image, colour), 8u) << std::hex << colour;
  }
}

TEST(TreePicture, EqualRoundsGiveEqualPictures) {
  const auto log = built_log(192);
  const app::Image a = picture(log, 1, {.name = "built192"}), b = picture(log, 1, {.name = "built192"});
  EXPECT_EQ(differing_share(a, b), 0);
}

TEST(TreePicture, AThousandNodesFoldIntoTufts) {
  const auto log = built_log(1024, 1);
  const app::Image image = picture(log, 0, {.name = "built1024"});
  EXPECT_GT(pixels_of(image, app::theme(ThemeKind::dark).limb_unreached), 100u) << "limbs to tufts are filled";
}

TEST(TreePicture, WordsFoundInTheTextLookDifferent) {
  const auto drawn = [](const RoundRecord& record, const char* name) {
    const auto log = std::make_shared<SampleLog>();
    log->add(record);
    return picture(log, 0, {.name = name});
  };
  const app::Image drafted = drawn(small_round(), "sources-drafter"), both = drawn(found_round(), "sources-both"),
                   text = drawn(text_round(), "sources-text");
  EXPECT_GT(differing_share(drafted, both), 0);
  EXPECT_GT(differing_share(both, text), 0);
  EXPECT_GT(differing_share(drafted, text), 0);
}

TEST(TreePicture, TheEmptyPanelSaysWhatToDo) {
  const app::Image image = picture(std::make_shared<SampleLog>(), 0, {.name = "empty"});
  const app::Theme& t = app::theme(ThemeKind::dark);
  const size_t ground = pixels_of(image, t.canvas) + pixels_of(image, t.panel);
  EXPECT_GT(image.pixels.size() / 4 - ground, 800u) << "an icon, a sentence and a button";
  EXPECT_GT(pixels_of(image, t.ctl), 60u) << "the button's border";
}

TEST(TreePicture, ARecordedRun) {
  const char* trace = std::getenv("CANOPY_PICTURES_TRACE");
  if (!trace) GTEST_SKIP() << "CANOPY_PICTURES_TRACE names no trace";
  const auto log = std::make_shared<app::TraceLog>(trace);
  const char* which = std::getenv("CANOPY_PICTURES_ROUND");
  size_t best = 0;
  for (size_t i = 0; i < log->rounds(); ++i)
    if (log->summary(i).accepted > log->summary(best).accepted) best = i;
  if (which) best = std::min<size_t>(std::strtoul(which, nullptr, 10), log->rounds() - 1);
  const uint32_t bonus = log->summary(best).width;
  picture(log, best, {.name = "real-dark", .selected = bonus});
  picture(log, best, {.name = "real-light", .theme = ThemeKind::light, .selected = 1});
  picture(log, best, {.name = "real-close", .wheel = 3});
  picture(log, best, {.name = "real-wide", .width = 1600, .height = 900});
  picture(log, best, {.name = "real-scaled", .width = 1302, .height = 786, .scale = 1.5f});
  const char* names[] = {"fill", "insert", "verify", "walk", "bonus", "commit"};
  for (uint32_t i = 0; i < app::kPhases; ++i)
    picture(log, best,
            {.name = std::string("real-") + names[i], .phase = static_cast<app::Phase>(i), .progress = 0.6f});
}

}  // namespace
}  // namespace canopy::test
