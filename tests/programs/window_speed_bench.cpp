// What the window costs a reply where the processor is free beside it, as beside a GPU (gui.md, criterion 28): tokens a
// second with the window over those without, in pairs. The device is made up and sleeps (sleeping_device.h). Printed,
// not judged: times depend on the machine. What is judged is that the window was drawn and the text is the same.
//
// CANOPY_BENCH_PAIRS=21 CANOPY_BENCH_TOKENS=400 measures; by default there is one short pair.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include "app/app.h"
#include "app/platform/desktop_window.h"
#include "app/platform/imgui_context.h"
#include "app/run.h"
#include "engine/session/engine_thread.h"
#include "tests/app/support/test_engine.h"
#include "tests/base/processor_time.h"
#include "tests/model/golden_data.h"
#include "tests/programs/sleeping_device.h"
#include "tests/reference/reference_device.h"

namespace canopy::test {
namespace {

using namespace std::chrono_literals;

constexpr auto kPass = 8ms;
constexpr uint32_t kDrafted = 12;  // nodes of a tree
constexpr const char* kQuestion = "def main():";

uint32_t from_environment(const char* name, uint32_t otherwise) {
  const char* value = std::getenv(name);
  return value != nullptr ? static_cast<uint32_t>(std::max(1, std::atoi(value))) : otherwise;
}

struct Spoken {
  std::string text;
  double tokens_per_second = 0;
  uint32_t tokens = 0;
  uint64_t frames = 0;  // drawn
  // Processor time of the window's thread for a frame while the reply is written; 0: not measured.
  double mean_frame_ms = 0, longest_frame_ms = 0;
};

/// Passes everything on, has every reply drafted with trees by the tiny drafter, and keeps what came of it.
class SpeedClient final : public EngineClient {
 public:
  SpeedClient(EngineClient& engine, SleepingPasses& passes, Spoken& spoken)
      : engine_(engine), passes_(passes), spoken_(spoken) {}

  void post(Command command) override {
    if (auto* load = std::get_if<LoadModel>(&command))
      load->drafter = (golden_folder() / "tiny-qwen3-dflash-b8").string();
    if (auto* generate = std::get_if<Generate>(&command)) {
      generate->mode = DecodeMode::tree;
      generate->budget = kDrafted;
      passes_.sleeping = true;
    }
    engine_.post(std::move(command));
  }
  std::vector<Event> poll() override {
    std::vector<Event> events = engine_.poll();
    for (const Event& event : events) {
      if (const auto* delta = std::get_if<TextDelta>(&event)) spoken_.text += delta->text;
      if (const auto* end = std::get_if<ReplyFinished>(&event)) {
        spoken_.tokens_per_second = end->tokens_per_second;
        spoken_.tokens = end->reply_tokens;
      }
    }
    return events;
  }
  void set_wake(std::function<void()> wake) override { engine_.set_wake(std::move(wake)); }
  std::vector<DeviceChoice> devices() const override { return engine_.devices(); }

 private:
  EngineClient& engine_;
  SleepingPasses& passes_;
  Spoken& spoken_;
};

app::AppOptions speed_options(app::WindowLayout layout) {
  app::AppOptions options;
  options.model = (golden_folder() / "tiny-qwen3").string();
  options.model_given = true;
  options.prompt = kQuestion;
  options.layout = layout;
  options.system_fonts = false;
  options.exit_after_reply = true;
  options.sampling.temperature = 0.9f;  // the tiny model's likeliest text ends early
  options.sampling.seed = 7;
  options.max_tokens = from_environment("CANOPY_BENCH_TOKENS", 40);
  options.shot = testing::TempDir() + "canopy_window_speed.png";
  return options;
}

class WindowSpeed : public testing::TestWithParam<app::WindowLayout> {
 protected:
  using Run = std::function<void(EngineClient&, const app::AppOptions&, Spoken&)>;

  /// A reply on an engine of its own.
  Spoken speak(const Run& run) {
    EngineBackend backend;
    backend.open_device = [this](const std::string&, uint32_t) -> std::unique_ptr<Device> {
      return std::make_unique<SleepingDevice>(make_reference_device(), kPass, passes_);
    };
    backend.list_devices = [] { return std::vector<DeviceChoice>{{"0", "Sleeping", "made up", true, ""}}; };
    passes_.sleeping = false;
    Spoken spoken;
    EngineThread engine(backend);
    SpeedClient client(engine, passes_, spoken);
    run(client, speed_options(GetParam()), spoken);
    return spoken;
  }

  static void nowhere(EngineClient& engine, const app::AppOptions& options, Spoken&) {
    std::ostringstream out, err;
    EXPECT_EQ(app::run_offscreen(engine, options, out, err), 0) << err.str();
  }
  static void in_a_window(EngineClient& engine, const app::AppOptions& options, Spoken& spoken) {
    std::ostringstream err;
    app::WindowStatistics statistics;
    EXPECT_EQ(app::run_window(engine, options, err, &statistics), 0) << err.str();
    spoken.frames = statistics.frames;
  }
  /// Frames are laid out as often as the window draws on a GPU, and given to nobody: what they cost the processor
  /// there, without what the driver takes.
  static void laid_out(EngineClient& engine, const app::AppOptions& options, Spoken& spoken);

  void print_pairs(const char* what, const Run& with_window) {
    std::vector<double> ratios;
    const uint32_t pairs = from_environment("CANOPY_BENCH_PAIRS", 1);
    for (uint32_t pair = 0; pair < pairs; ++pair) {
      Spoken with, without;
      if (pair % 2 == 1) with = speak(with_window);
      without = speak(nowhere);
      if (pair % 2 == 0) with = speak(with_window);
      ASSERT_FALSE(without.text.empty());
      EXPECT_EQ(with.text, without.text);
      EXPECT_GE(with.frames, 5u);
      ratios.push_back(with.tokens_per_second / without.tokens_per_second);
      std::printf("%s, pair %u: %u tokens, %.2f tok/s without, %.2f with, %llu frames, ratio %.4f\n", what, pair + 1,
                  with.tokens, without.tokens_per_second, with.tokens_per_second,
                  static_cast<unsigned long long>(with.frames), ratios.back());
      if (with.mean_frame_ms > 0)
        std::printf(
            "%s, pair %u: %.2f ms of processor time a frame in the mean while the reply is written, %.2f at most "
            "(Watch is to stay under 4 in the mean)\n",
            what, pair + 1, with.mean_frame_ms, with.longest_frame_ms);
    }
    std::ranges::sort(ratios);
    std::printf(
        "%s: median ratio %.4f of %zu pairs, from %.4f to %.4f; passes of %lld ms, of which computing took %.2f "
        "ms of the processor, %llu of %llu late\n",
        what, ratios[ratios.size() / 2], ratios.size(), ratios.front(), ratios.back(),
        static_cast<long long>(kPass.count()),
        static_cast<double>(passes_.computed_us) / 1e3 / static_cast<double>(std::max<uint64_t>(1, passes_.count)),
        static_cast<unsigned long long>(passes_.late), static_cast<unsigned long long>(passes_.count));
  }

  SleepingPasses passes_;
};

void WindowSpeed::laid_out(EngineClient& engine, const app::AppOptions& options, Spoken& spoken) {
  const auto begin = std::chrono::steady_clock::now();
  const auto now = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(); };
  app::ImguiContext context;
  ImGuiIO& io = ImGui::GetIO();
  io.DisplaySize = {static_cast<float>(options.width), static_cast<float>(options.height)};
  io.BackendFlags |= ImGuiBackendFlags_RendererHasTextures;
  app::AppSettings settings;
  settings.system_fonts = false;
  settings.layout = options.layout;
  settings.sampling = options.sampling;
  settings.max_tokens = options.max_tokens;
  {
    app::App app(engine, settings);
    app.run(app::OpenModel{options.model});
    app::FramePacer pacer(false);
    bool asked = false;
    while (!asked || app.view().busy()) {
      if (app.pump()) pacer.on_engine_event(app.engine_busy());
      pacer.on_motion(app.moving());
      if (!asked && app.view().can_send()) {
        app.run(app::SendMessage{options.prompt});
        asked = true;
      }
      const double wait = pacer.wait(now());
      if (wait > 0) {
        std::this_thread::sleep_for(std::chrono::duration<double>(std::min(wait, 0.004)));
        continue;
      }
      const double start = now();
      const ProcessorClock processor;
      lay_out_frame(app);
      const double ms = 1e3 * processor.seconds();
      pacer.on_frame(start, now() - start);
      if (!asked) continue;
      ++spoken.frames;
      spoken.mean_frame_ms += (ms - spoken.mean_frame_ms) / static_cast<double>(spoken.frames);
      spoken.longest_frame_ms = std::max(spoken.longest_frame_ms, ms);
    }
  }
  drop_textures();
}

TEST_P(WindowSpeed, WithFramesThatAreLaidOut) {
  print_pairs(GetParam() == app::WindowLayout::lab ? "laid out, Lab" : "laid out, Watch", laid_out);
}

TEST_P(WindowSpeed, WithAWindowThatTheProcessorDraws) {
  if (!app::display_present()) GTEST_SKIP() << "there is no display; ctest starts this program under xvfb-run";
  print_pairs(GetParam() == app::WindowLayout::lab ? "drawn by the processor, Lab" : "drawn by the processor, Watch",
              in_a_window);
}

INSTANTIATE_TEST_SUITE_P(Layouts, WindowSpeed, testing::Values(app::WindowLayout::watch, app::WindowLayout::lab),
                         [](const auto& each) { return each.param == app::WindowLayout::lab ? "Lab" : "Watch"; });

}  // namespace
}  // namespace canopy::test
