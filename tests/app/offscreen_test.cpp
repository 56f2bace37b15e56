// Pictures without a display, on whatever Vulkan device the machine has.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>

#include "app/run.h"
#include "tests/app/support/picture.h"
#include "tests/app/support/scripted_engine.h"

namespace canopy::test {
namespace {

namespace fs = std::filesystem;
using app::AppOptions;

struct Outcome {
  int exit_code;
  std::string out, err;
};

AppOptions options_for(const fs::path& shot, uint32_t width = 1280, uint32_t height = 800) {
  AppOptions options;
  options.model = "/models/SmolLM2-135M-Instruct.Q4_1.gguf";
  options.prompt = "Explain the merge step of merge sort.";
  options.offscreen = true;
  options.shot = shot.string();
  options.width = width;
  options.height = height;
  options.system_fonts = false;
  options.validate = true;
  return options;
}

Outcome run(const AppOptions& options, std::function<void(ScriptedEngine&, const Command&)> script) {
  ScriptedEngine engine;
  engine.devices_ = some_devices();
  engine.script = std::move(script);
  std::ostringstream out, err;
  const int exit_code = app::run_offscreen(engine, options, out, err);
  return {exit_code, out.str(), err.str()};
}

std::string bytes_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class Offscreen : public testing::Test {
 protected:
  void SetUp() override {
    unsetenv("DISPLAY");
    unsetenv("WAYLAND_DISPLAY");
    folder_ = fs::path(testing::TempDir()) / "canopy_offscreen_test";
    fs::remove_all(folder_);
  }
  fs::path folder_;
};

TEST_F(Offscreen, AnswersAndWritesAPictureOfTheSizeAskedFor) {
  const fs::path shot = folder_ / "made" / "canopy.png";
  const Outcome outcome = run(options_for(shot, 1000, 700), answers_with({"Two sorted lists ", "become one."}));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("Two sorted lists become one.\n"), std::string::npos);
  EXPECT_NE(outcome.out.find("64.0 tok/s"), std::string::npos);
  const app::Image image = read_png(shot);
  EXPECT_EQ(image.width, 1000u);
  EXPECT_EQ(image.height, 700u);
  EXPECT_GT(colour_count(image), 50u);
}

TEST_F(Offscreen, EqualStatesGiveEqualFiles) {
  for (const char* name : {"a.png", "b.png"}) {
    const Outcome outcome = run(options_for(folder_ / name), answers_with({"Same ", "text \u2713"}));
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  }
  EXPECT_EQ(bytes_of(folder_ / "a.png"), bytes_of(folder_ / "b.png"));
}

TEST_F(Offscreen, AFailureIsOnStderrAndInThePicture) {
  const auto broken = [](ScriptedEngine& engine, const Command& command) {
    if (std::holds_alternative<LoadModel>(command))
      engine.publish(Failure{ErrorKind::bad_input, "The model could not be opened", "It is 3 bytes long.", 0});
  };
  const Outcome outcome = run(options_for(folder_ / "broken.png"), broken);
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_NE(outcome.err.find("It is 3 bytes long."), std::string::npos);
  const app::Image image = read_png(folder_ / "broken.png");
  // Only the bar of a failure's card has this colour at full strength.
  const app::Colour bar = app::theme(app::ThemeKind::dark).rejected;
  size_t found = 0;
  for (size_t i = 0; i < image.pixels.size(); i += 4)
    found += image.pixels[i] == (bar & 0xFF) && image.pixels[i + 1] == (bar >> 8 & 0xFF) &&
             image.pixels[i + 2] == (bar >> 16 & 0xFF);
  EXPECT_GT(found, 100u);
}

TEST_F(Offscreen, AnUnwritablePictureIsAnError) {
  const Outcome outcome = run(options_for("/proc/canopy/nowhere.png"), answers_with({"x"}));
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_NE(outcome.err.find("/proc/canopy/nowhere.png"), std::string::npos);
}

TEST_F(Offscreen, DrawingIsCleanUnderTheValidationLayer) {
  ScriptedEngine engine;
  engine.devices_ = some_devices();
  engine.script = answers_with({"Text in \u4e2d\u6587 and \U0001F333 grows the glyph atlas."});
  app::Headless headless(engine, {}, 640, 480, true);
  if (!headless.device().validation_active()) GTEST_SKIP() << "the Khronos validation layer is not installed";
  headless.settled_frame();
  headless.app().run(app::OpenModel{"/models/a.gguf"});
  headless.app().pump();
  headless.app().run(app::SendMessage{"Hello"});
  for (float scale : {1.0f, 2.5f, 0.75f}) {
    headless.app().pump();
    headless.app().run(app::SetScale{scale});
    headless.settled_frame();
  }
  EXPECT_TRUE(headless.device().validation_messages().empty()) << headless.device().validation_messages().front();
}

}  // namespace
}  // namespace canopy::test
