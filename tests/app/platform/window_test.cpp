// A real window on a virtual display: it presents the same picture as the off-screen path, and draws nothing while
// idle.

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <sstream>
#include <thread>

#include "app/run.h"
#include "app/state/settings.h"
#include "tests/app/support/picture.h"
#include "tests/app/support/pixels.h"
#include "tests/app/support/scripted_engine.h"

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

// gui.md, criterion 3
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
  EXPECT_LE(differing_share(window, offscreen), 0.005);
}

/// Clicks along the status bar, as a user who aims at Cancel, until the engine received the command.
void click_until_cancelled(const ScriptedEngine& engine) {
  const std::string window = "$(xdotool search --sync --onlyvisible --name '^Canopy$' | head -1)";
  for (int round = 0; round < 3; ++round) {
    for (int x = 60; x < 640 && engine.count<CancelLoad>() == 0; x += 24) {
      const std::string click = "w=" + window + "; xdotool mousemove --window $w " + std::to_string(x) +
                                " 786 sleep 0.1 mousedown 1 sleep 0.1 mouseup 1 sleep 0.1";
      ASSERT_EQ(std::system(click.c_str()), 0);
    }
  }
}

TEST_F(Window, AClickOnCancelEndsTheLoad) {
  if (std::system("command -v xdotool > /dev/null") != 0) GTEST_SKIP() << "xdotool is not installed";
  ScriptedEngine engine;
  engine.devices_ = some_devices();
  std::atomic<bool> loading{false};
  std::thread loader, user;
  engine.script = [&](ScriptedEngine& e, const Command& command) {
    if (std::holds_alternative<CancelLoad>(command)) loading = false;
    if (!std::holds_alternative<LoadModel>(command)) return;
    loading = true;
    loader = std::thread([&] {
      for (uint64_t done = 0; loading && done < 1200; ++done) {  // a minute
        e.publish(LoadProgress{"Loading weights", done * 1'000'000, 1'200'000'000, true, 60.0 - 0.05 * double(done)});
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
      }
      e.publish(Failure{ErrorKind::cancelled, "Loading was cancelled", "", 0});
    });
    user = std::thread([&] { click_until_cancelled(engine); });
  };
  std::ostringstream err;
  const int exit_code = app::run_window(engine, options_for(folder_ / "cancel.png"), err);
  user.join();
  loader.join();
  EXPECT_EQ(exit_code, 1);
  EXPECT_NE(err.str().find("Loading was cancelled."), std::string::npos) << err.str();
  EXPECT_EQ(engine.count<CancelLoad>(), 1u);
  EXPECT_EQ(engine.count<Generate>(), 0u);
}

/// Runs the window while a reply is being written. `during` is called on a thread of its own once the reply has begun;
/// when it returns, the reply ends.
int run_while_replying(const app::AppOptions& options, app::WindowStatistics& statistics,
                       const std::function<void(ScriptedEngine&, uint64_t id)>& during) {
  ScriptedEngine engine;
  engine.devices_ = some_devices();
  std::thread speaker;
  engine.script = [&](ScriptedEngine& e, const Command& command) {
    if (std::holds_alternative<LoadModel>(command)) e.publish(small_model());
    const auto* generate = std::get_if<Generate>(&command);
    if (!generate) return;
    speaker = std::thread([&e, &during, id = generate->reply_id] {
      e.publish(TextDelta{id, "First words", 2, 20, 10});
      during(e, id);
      ReplyFinished finished;
      finished.reply_id = id;
      e.publish(finished);
    });
  };
  std::ostringstream err;
  const int exit_code = app::run_window(engine, options, err, &statistics);
  if (speaker.joinable()) speaker.join();
  EXPECT_EQ(err.str(), "");
  return exit_code;
}

// gui.md, criterion 22
TEST_F(Window, TenIdleSecondsBringAtMostFifteenFrames) {
  app::WindowStatistics statistics;
  uint64_t settled = 0, later = 0;
  const int exit_code =
      run_while_replying(options_for(folder_ / "rest.png"), statistics, [&](ScriptedEngine&, uint64_t) {
        std::this_thread::sleep_for(std::chrono::seconds(2));
        settled = statistics.frames;
        std::this_thread::sleep_for(std::chrono::seconds(10));
        later = statistics.frames;
      });
  EXPECT_EQ(exit_code, 0);
  EXPECT_GT(settled, 0u);
  EXPECT_LE(later - settled, 15u);
}

/// Presses keys in the window, one after the other, as a presenter would.
bool press(const std::string& keys) {
  const std::string command =
      "w=$(xdotool search --sync --onlyvisible --name '^Canopy$' | head -1); xdotool windowfocus --sync $w; "
      "for k in " +
      keys + "; do xdotool key $k; sleep 0.8; done";
  return std::system(command.c_str()) == 0;
}

/// The settings in the file once they are as wanted, or after half a minute: drawing may be slow.
template <class Wanted>
app::SavedSettings settings_when(const std::string& file, Wanted&& wanted) {
  app::SavedSettings settings;
  for (int i = 0; i < 150; ++i) {
    settings = app::read_settings(file).settings;
    if (wanted(settings)) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
  return settings;
}

TEST_F(Window, APresentersKeysLeadThroughTourSlowMotionThemesAndLayouts) {
  if (std::system("command -v xdotool > /dev/null") != 0) GTEST_SKIP() << "xdotool is not installed";
  fs::create_directories(folder_);
  app::AppOptions options = options_for(folder_ / "keys.png");
  options.settings_file = (folder_ / "keys.json").string();
  fs::remove(options.settings_file);
  app::WindowStatistics statistics;
  app::SavedSettings in_tour, after;
  const int exit_code = run_while_replying(options, statistics, [&](ScriptedEngine& engine, uint64_t) {
    // The palette opens the tour; a presenter's remote control sends Page Down and Page Up.
    EXPECT_TRUE(press("ctrl+k"));
    std::this_thread::sleep_for(std::chrono::seconds(1));
    EXPECT_TRUE(press("t o u r Return Next Next Next Prior"));
    in_tour = settings_when(options.settings_file, [](const auto& s) { return s.tour_seen && s.tour_step == 2; });
    EXPECT_TRUE(press("Escape F9 F9 F1 Escape ctrl+shift+l F4"));
    after = settings_when(options.settings_file, [](const auto& s) { return s.layout == app::WindowLayout::lab; });
    EXPECT_EQ(engine.count<StopReply>(), 0u) << "Esc closes what lies over the window first";
  });
  EXPECT_EQ(exit_code, 0);
  EXPECT_TRUE(in_tour.tour_seen);
  EXPECT_EQ(in_tour.tour_step, 2u);
  EXPECT_EQ(in_tour.layout, app::WindowLayout::watch);
  EXPECT_EQ(after.theme, app::ThemeKind::light);
  EXPECT_EQ(after.layout, app::WindowLayout::lab);
  EXPECT_EQ(after.tour_step, 2u) << "the tour goes on where it was left";
  const app::Image shot = read_png(folder_ / "keys.png");
  EXPECT_EQ(shot.width, 1280u);
}

/// Tells the window that it was minimised or restored, as a window manager would.
bool set_minimised(bool minimised) {
  const std::string command =
      "w=$(xdotool search --sync --onlyvisible --name '^Canopy$' | head -1); python3 -c '"
      "import ctypes, sys; x = ctypes.CDLL(\"libX11.so.6\"); x.XOpenDisplay.restype = ctypes.c_void_p; "
      "d = ctypes.c_void_p(x.XOpenDisplay(None)); "
      "a = x.XInternAtom(d, b\"WM_STATE\", 0); state = (ctypes.c_long * 2)(int(sys.argv[2]), 0); "
      "x.XChangeProperty(d, ctypes.c_ulong(int(sys.argv[1])), a, a, 32, 0, state, 2); x.XSync(d, 0)' $w " +
      std::string(minimised ? "3" : "1");
  return std::system(command.c_str()) == 0;
}

// gui.md, criterion 22
TEST_F(Window, AMinimisedWindowDrawsNothingWhateverTheEngineSays) {
  if (std::system("command -v xdotool > /dev/null && command -v python3 > /dev/null") != 0)
    GTEST_SKIP() << "xdotool or python3 is not installed";
  app::WindowStatistics statistics;
  uint64_t before = 0, after = 0;
  bool told = false;
  const int exit_code =
      run_while_replying(options_for(folder_ / "mini.png"), statistics, [&](ScriptedEngine& engine, uint64_t id) {
        std::this_thread::sleep_for(std::chrono::seconds(1));
        told = set_minimised(true);
        std::this_thread::sleep_for(std::chrono::seconds(1));
        before = statistics.frames;
        for (uint32_t n = 3; n < 60; ++n) {
          engine.publish(TextDelta{id, " more", n, 20 + n, 10});
          std::this_thread::sleep_for(std::chrono::milliseconds(50));
        }
        after = statistics.frames;
        told = set_minimised(false) && told;
      });
  EXPECT_EQ(exit_code, 0);
  ASSERT_TRUE(told);
  EXPECT_GT(before, 0u);
  EXPECT_EQ(after, before);
  EXPECT_GT(statistics.frames, after) << "brought back, it draws again";
}

/// Processor seconds of this process, over all threads.
double processor_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  auto seconds = [](const timeval& t) { return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6; };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

TEST_F(Window, DrawingOnASoftwareDeviceLeavesTheProcessorToTheEngine) {
  ScriptedEngine engine;
  engine.devices_ = some_devices();
  std::thread speaker;
  double spent = 0, wall = 0;
  engine.script = [&](ScriptedEngine& e, const Command& command) {
    if (std::holds_alternative<LoadModel>(command)) e.publish(small_model());
    const auto* generate = std::get_if<Generate>(&command);
    if (!generate) return;
    const uint64_t id = generate->reply_id;
    speaker = std::thread([&, id] {
      constexpr auto kToken = std::chrono::milliseconds(20);
      for (uint32_t n = 1; n <= 250; ++n) {
        if (n == 50) {  // the first second is start-up
          spent = -processor_seconds();
          wall = -std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
        }
        e.publish(TextDelta{id, n % 12 ? "word " : "word.\n", n, 20 + n, 50});
        std::this_thread::sleep_for(kToken);
      }
      spent += processor_seconds();
      wall += std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
      ReplyFinished finished;
      finished.reply_id = id;
      e.publish(finished);
    });
  };
  std::ostringstream err;
  app::WindowStatistics statistics;
  app::AppOptions options = options_for(folder_ / "stream.png");
  options.validate = false;  // the work of the validation layer would count
  const int exit_code = app::run_window(engine, options, err, &statistics);
  if (speaker.joinable()) speaker.join();
  ASSERT_EQ(exit_code, 0) << err.str();
  if (!statistics.software_device) GTEST_SKIP() << "this machine draws on hardware";
  const double share = spent / (wall * std::max(1u, std::thread::hardware_concurrency()));
  RecordProperty("share", std::to_string(share));
  RecordProperty("frames", static_cast<int>(statistics.frames));
  // The rule is a tenth; the rest allows for the noise of a busy machine.
  EXPECT_LE(share, 0.12);
  EXPECT_GE(statistics.frames, 10u);
}

}  // namespace
}  // namespace canopy::test
