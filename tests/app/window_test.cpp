// A real window on a virtual display: what it presents is what the off-screen path draws, and it rests while nothing
// happens.

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <sstream>
#include <thread>

#include "app/run.h"
#include "tests/app/picture.h"
#include "tests/app/scripted_engine.h"

namespace canopy::test {
namespace {

namespace fs = std::filesystem;

app::AppOptions options_for(const fs::path& shot) {
  app::AppOptions options;
  options.model = "/models/SmolLM2-135M-Instruct.Q4_1.gguf";
  options.model_given = true;
  options.prompt = "Explain the merge step of merge sort.";
  options.shot = shot.string();
  options.system_fonts = false;
  options.validate = true;
  options.exit_after_reply = true;
  return options;
}

class Window : public testing::Test {
 protected:
  void SetUp() override {
    if (!app::display_present()) GTEST_SKIP() << "there is no display; ctest starts this program under xvfb-run";
  }
  fs::path folder_ = fs::path(testing::TempDir()) / "canopy_window_test";
};

TEST_F(Window, PresentsWhatTheOffscreenPathDraws) {
  std::ostringstream out, err;
  {
    ScriptedEngine engine;
    engine.devices_ = some_devices();
    engine.script = answers_with({"Two sorted lists ", "become one."});
    ASSERT_EQ(app::run_window(engine, options_for(folder_ / "window.png"), err), 0) << err.str();
  }
  {
    ScriptedEngine engine;
    engine.devices_ = some_devices();
    engine.script = answers_with({"Two sorted lists ", "become one."});
    ASSERT_EQ(app::run_offscreen(engine, options_for(folder_ / "offscreen.png"), out, err), 0) << err.str();
  }
  const app::Image window = read_png(folder_ / "window.png"), offscreen = read_png(folder_ / "offscreen.png");
  EXPECT_EQ(window.width, 1280u);
  EXPECT_EQ(window.height, 800u);
  EXPECT_LE(app::differing_share(window, offscreen), 0.005);
}

TEST_F(Window, RestsWhileTheEngineSaysNothing) {
  ScriptedEngine engine;
  engine.devices_ = some_devices();
  std::thread speaker;
  engine.script = [&](ScriptedEngine& e, const Command& command) {
    if (std::holds_alternative<LoadModel>(command)) e.publish(small_model());
    const auto* generate = std::get_if<Generate>(&command);
    if (!generate) return;
    const uint64_t id = generate->reply_id;
    speaker = std::thread([&e, id] {
      e.publish(TextDelta{id, "First words", 2, 20, 10});
      std::this_thread::sleep_for(std::chrono::seconds(4));
      ReplyFinished finished;
      finished.reply_id = id;
      e.publish(finished);
    });
  };
  std::ostringstream err;
  app::WindowStatistics statistics;
  const int exit_code = app::run_window(engine, options_for(folder_ / "rest.png"), err, &statistics);
  speaker.join();
  EXPECT_EQ(exit_code, 0) << err.str();
  // Start, the model, the prompt, the words and the end bring a few frames each; four seconds of silence bring none.
  EXPECT_LE(statistics.frames, 30u);
}

}  // namespace
}  // namespace canopy::test
