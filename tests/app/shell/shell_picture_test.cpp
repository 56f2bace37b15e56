// Pictures of the whole window: the first run and the docked panels, in both themes. CANOPY_PICTURES=folder keeps them.

#include <gtest/gtest.h>

#include <string>

#include "app/platform/image.h"
#include "app/run.h"
#include "app/state/shell.h"
#include "tests/app/support/pixels.h"
#include "tests/app/support/scripted_engine.h"

namespace canopy::test {
namespace {

constexpr uint32_t kWidth = 1600, kHeight = 1000;

ModelReady drafting_model() {
  constexpr uint64_t MiB = 1ull << 20;
  ModelReady model = small_model();
  model.file_name = "Qwen3-4B.Q4_K_M.gguf";
  model.quantization = "Q4_K_M";
  model.drafter = "Qwen3-4B-DFlash-b16.gguf";
  model.block = 16;
  model.context = model.model_context = 32768;
  model.memory.weights = 2386 * MiB;
  model.memory.drafter = 1044 * MiB;
  model.memory.cache = 4608 * MiB;
  model.memory.context = 32768;
  model.memory.tree = 317 * MiB;
  model.memory.budget = 24576 * MiB;
  model.memory.available = model.memory.budget - model.memory.total() - 1659 * MiB;
  return model;
}

app::Colour pixel(const app::Image& image, uint32_t x, uint32_t y) {
  const uint8_t* p = image.pixels.data() + (size_t{y} * image.width + x) * 4;
  return p[0] | app::Colour{p[1]} << 8 | app::Colour{p[2]} << 16 | 0xFF000000u;
}

class WindowPictures : public testing::TestWithParam<app::ThemeKind> {
 protected:
  WindowPictures() {
    engine_.devices_ = some_devices();
    settings_.theme = GetParam();
    settings_.layout = app::WindowLayout::lab;
    settings_.system_fonts = false;
    settings_.default_model = "/models/SmolLM2-135M-Instruct.Q4_1.gguf";
  }
  std::string name(const char* what) const {
    return std::string(what) + (GetParam() == app::ThemeKind::dark ? "-dark" : "-light");
  }
  const app::Theme& theme() const { return app::theme(GetParam()); }

  ScriptedEngine engine_;
  app::AppSettings settings_;
};

TEST_P(WindowPictures, TheFirstRun) {
  app::Headless window(engine_, settings_, kWidth, kHeight, false);
  const app::Image image = window.settled_frame();
  keep_picture(image, name("first-run"));
  EXPECT_EQ(pixel(image, 20, 500), theme().back) << "beside the cards";
  EXPECT_EQ(pixel(image, 800, 4), theme().panel) << "the top bar";
}

TEST_P(WindowPictures, TheFirstStartWithTheModelOfTheSetUp) {
  settings_.welcome = true;
  engine_.script = [](ScriptedEngine& engine, const Command& command) {
    if (std::holds_alternative<LoadModel>(command)) engine.publish(LoadProgress{"Loading weights", 1, 4, false, -1});
  };
  app::Headless window(engine_, settings_, 1280, 800, false);
  window.app().run(app::OpenModel{settings_.default_model});
  window.app().pump();
  keep_picture(window.settled_frame(), name("first-start-loading"));
  engine_.publish(drafting_model());
  window.app().pump();
  const app::Image ready = window.settled_frame();
  keep_picture(ready, name("first-start-ready"));
  EXPECT_EQ(pixel(ready, 10, 500), theme().back) << "the start page is still there";
  window.app().run(app::ShowPathBox{});
  keep_picture(window.settled_frame(), name("browser"));
}

TEST_P(WindowPictures, ThePanels) {
  app::Headless window(engine_, settings_, kWidth, kHeight, false);
  const auto answer = answers_with({"The merge step ", "joins two lists."});
  engine_.script = [&](ScriptedEngine& engine, const Command& command) {
    if (std::holds_alternative<LoadModel>(command))
      engine.publish(drafting_model());
    else
      answer(engine, command);
  };
  window.app().run(app::OpenModel{"/models/Qwen3-4B.Q4_K_M.gguf"});
  window.app().pump();
  window.app().run(app::SendMessage{"Explain the merge step of merge sort."});
  window.app().pump();
  window.settled_frame();
  const app::Image image = window.settled_frame();
  keep_picture(image, name("panels"));
  EXPECT_EQ(pixel(image, 366, 400), theme().back) << "the line between chat and tree";
  EXPECT_EQ(pixel(image, 30, 48), theme().accent) << "the first tab of the chat is in front";
  window.app().run(app::ShellCommand(app::ShowPalette{}));
  window.app().run(app::ShowHelp{});
  keep_picture(window.settled_frame(), name("palette"));
  window.app().run(app::ShellCommand(app::ShowPalette{false}));
  window.app().run(app::ShowHelp{false});
  window.app().run(app::ChatCommand(app::ShowChatFiles{app::ChatFiles::exporting}));
  keep_picture(window.settled_frame(), name("export"));
  window.app().run(app::ChatCommand(app::ShowChatFiles{app::ChatFiles::closed}));
  window.settled_frame();
  ImGui::GetIO().AddMousePosEvent(kWidth - 40, 24);  // on View
  ImGui::GetIO().AddMouseButtonEvent(ImGuiMouseButton_Left, true);
  window.frame();
  ImGui::GetIO().AddMouseButtonEvent(ImGuiMouseButton_Left, false);
  const app::Image menu = window.settled_frame();
  keep_picture(menu, name("view-menu"));
  EXPECT_EQ(pixel(menu, kWidth - 100, 120), theme().raised) << "the menu at the right";
}

TEST_P(WindowPictures, ARecordedRun) {
  app::Headless window(engine_, settings_, kWidth, kHeight, false);
  window.app().run(app::OpenModel{CANOPY_SOURCE_DIR "/assets/demos/code.canopytrace"});
  ASSERT_GT(window.app().view().rounds.log->rounds(), 20u);
  window.app().run(app::RoundsCommand(app::ShowRound{window.app().view().rounds.log->rounds() - 4}));
  window.settled_frame();
  const app::Image image = window.settled_frame();
  keep_picture(image, name("demo"));
  EXPECT_EQ(pixel(image, 366, 400), theme().back) << "panels, not the start page";
}

/// A reply with the result of a check below it, while a recording runs.
TEST_P(WindowPictures, ARecordingAndACheckedReply) {
  app::Headless window(engine_, settings_, kWidth, kHeight, false);
  const std::vector<uint32_t> tokens = {1, 2, 3, 4, 5, 6};
  engine_.script = [&](ScriptedEngine& engine, const Command& command) {
    if (std::holds_alternative<LoadModel>(command)) engine.publish(drafting_model());
    if (std::holds_alternative<RecordTrace>(command))
      engine.publish(Recording{true, "canopy-2026-11-22-140512.canopytrace", 48'200, 73, ""});
    const auto* generate = std::get_if<Generate>(&command);
    if (!generate) return;
    auto record = std::make_shared<RoundRecord>();
    record->mode = generate->mode.value_or(DecodeMode::tree);
    record->shape = DecodeMode::ar;  // the shape of a single round is never adaptive
    record->emitted.assign(tokens.begin() + 1, tokens.end());
    engine.publish(ReplyStarted{generate->reply_id, 24, 0, 38, tokens.front()});
    engine.publish(TextDelta{generate->reply_id, "The merge step joins two lists.", 6, 30, 64});
    engine.publish(RoundFinished{generate->reply_id, record, 1, 3, {9, 14, 20, 24, 31}, false});
    ReplyFinished finished;
    finished.reply_id = generate->reply_id;
    finished.reply_tokens = 6;
    finished.mode = record->mode;
    finished.tokens_per_second = 64;
    engine.publish(finished);
  };
  window.app().run(app::OpenModel{"/models/Qwen3-4B.Q4_K_M.gguf"});
  window.app().pump();
  window.app().run(app::SendMessage{"Explain the merge step of merge sort."});
  window.app().pump();
  window.app().run(app::CheckCommand(app::CheckAgainstAr{window.app().view().messages.back().id}));
  window.app().pump();
  ASSERT_EQ(window.app().view().checks.check.phase, app::ArCheck::Phase::same);
  window.app().run(app::RecordingCommand(app::ShowRecordBox{}));
  window.settled_frame();
  keep_picture(window.settled_frame(), name("record-box"));
  window.app().run(app::RecordingCommand(app::StartRecording{"/data/canopy-2026-11-22-140512.canopytrace", false}));
  window.app().pump();
  window.settled_frame();
  const app::Image image = window.settled_frame();
  keep_picture(image, name("recording"));
  EXPECT_EQ(pixel(image, 18, kHeight - 28 - 106 + 14 + 62 + 11), theme().rejected) << "the dot of the recording";
}

/// The model was released: its name stays, and the bar of the memory is empty of it.
TEST_P(WindowPictures, AReleasedModel) {
  int64_t now_ms = 1'700'000'000'000;
  settings_.clock = [&] { return now_ms; };
  settings_.saved.idle_minutes = 15;
  LoadModel opened;
  engine_.script = [&](ScriptedEngine& engine, const Command& command) {
    if (const auto* load = std::get_if<LoadModel>(&command)) opened = *load;
    if (std::holds_alternative<LoadModel>(command)) engine.publish(drafting_model());
    if (std::holds_alternative<ReleaseModel>(command)) engine.publish(ModelReleased{opened});
  };
  app::Headless window(engine_, settings_, kWidth, kHeight, false);
  window.app().run(app::OpenModel{"/models/Qwen3-4B.Q4_K_M.gguf"});
  window.app().pump();
  const auto held = [&](const app::Image& image) {  // pixels in the target's part of the memory bar
    size_t count = 0;
    for (uint32_t y = 0; y < 48; ++y)
      for (uint32_t x = 600; x < 1000; ++x) count += pixel(image, x, y) == theme().verify;
    return count;
  };
  EXPECT_GT(held(window.settled_frame()), 50u);
  now_ms += 15 * 60'000;
  for (int i = 0; i < 2; ++i) window.app().pump();  // asks for the release, then hears of it
  window.settled_frame();
  const app::Image released = window.settled_frame();
  keep_picture(released, name("released"));
  EXPECT_EQ(held(released), 0u);
  window.app().run(app::ShellCommand(app::SetLayout{app::WindowLayout::watch}));
  window.settled_frame();
  ImGui::GetIO().AddMousePosEvent(400, 24);  // on the model's picker
  ImGui::GetIO().AddMouseButtonEvent(ImGuiMouseButton_Left, true);
  window.frame();
  ImGui::GetIO().AddMouseButtonEvent(ImGuiMouseButton_Left, false);
  keep_picture(window.settled_frame(), name("released-menu"));
}

INSTANTIATE_TEST_SUITE_P(Themes, WindowPictures, testing::Values(app::ThemeKind::dark, app::ThemeKind::light));

}  // namespace
}  // namespace canopy::test
